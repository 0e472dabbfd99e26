package descriptors

import (
	"errors"
	"math"
	"net"
	"slices"
	"syscall"
	"testing"
)

// If not everything fits it is divided, and files keep their part.
func TestDivide(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limit                  uint64
		clients, peers         int
		wantClients, wantPeers int
	}{
		{65_536, 16_384, 5_120, 16_384, 5_120},
		{16_384 + 5_120 + Files, 16_384, 5_120, 16_384, 5_120},
		{16_384 + 5_120 + Files - 1, 16_384, 5_120, 16_383, 5_120},
		{4_096, 16_384, 5_120, 2_016, 2_016},
		{4_096, 100, 5_120, 100, 3_932}, // clients that need little leave the rest
		{256, 16_384, 5_120, 96, 96},
		{128, 16_384, 5_120, 32, 32},
		{math.MaxUint64, 16_384, 5_120, 16_384, 5_120}, // no limit
	} {
		clients, peers, err := Divide(c.limit, c.clients, c.peers)
		if clients != c.wantClients || peers != c.wantPeers || err != nil {
			t.Errorf("of %d: %d and %d, %v; want %d and %d", c.limit, clients, peers, err, c.wantClients, c.wantPeers)
		}
	}
	if _, _, err := Divide(127, 1, 1); err == nil {
		t.Error("a node starts with 127 descriptors")
	}
}

// scripted answers with the results of next.
type scripted struct {
	net.Listener
	next []error
}

func (s *scripted) Accept() (net.Conn, error) {
	err := s.next[0]
	s.next = s.next[1:]
	if err != nil {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: err}
	}
	conn, _ := net.Pipe()
	return conn, nil
}

// Accept waits and retries after errors of the system, but not after the listener's own.
func TestListener_Accept(t *testing.T) {
	t.Parallel()
	var failed []error
	l := &Listener{
		Listener: &scripted{next: []error{syscall.EMFILE, syscall.EMFILE, syscall.ENFILE, nil, syscall.ENOBUFS, net.ErrClosed}},
		MakeRoom: func() bool { return false },
		Refuse:   func(net.Conn) { t.Error("a connection is refused though a descriptor is free") },
		Failed:   func(err error) { failed = append(failed, err) },
	}
	if conn, err := l.Accept(); conn == nil || err != nil {
		t.Fatal(err)
	}
	if conn, err := l.Accept(); conn != nil || !errors.Is(err, net.ErrClosed) {
		t.Fatalf("a closed listener: %v", err)
	}
	if len(failed) != 3 || !slices.ContainsFunc(failed, func(err error) bool { return errors.Is(err, syscall.ENFILE) }) {
		t.Errorf("it told %v", failed)
	}
}
