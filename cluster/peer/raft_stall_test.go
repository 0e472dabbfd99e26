package peer

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/peer/peertest"
	"github.com/claimq/claimq/internal/pause"
)

// stallingSnapshot is a leader's snapshot that stalls once head is read, until the test
// ends.
type stallingSnapshot struct {
	head io.Reader
	end  <-chan struct{}
}

func (s *stallingSnapshot) Read(b []byte) (int, error) {
	if n, err := s.head.Read(b); n > 0 || !errors.Is(err, io.EOF) {
		return n, err
	}
	<-s.end
	return 0, io.ErrUnexpectedEOF
}

// inboundLayer is a layer in memory whose connections are accepted like the peer port's.
type inboundLayer struct{ *peertest.MemoryLayer }

func (l inboundLayer) Accept() (net.Conn, error) {
	c, err := l.MemoryLayer.Accept()
	if err != nil {
		return nil, err
	}
	return &raftInbound{Conn: c}, nil
}

// Raft's main loop reads the snapshot that a leader sends. It must return when the leader
// stops in the middle, but not at once.
func TestRaftInbound_snapshotThatStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		follower, leader := peertest.NewMemoryLayer(), peertest.NewMemoryLayer()
		leader.To = follower
		transport := func(l raft.StreamLayer) *raft.NetworkTransport {
			return NewRaftTransport(l, hclog.NewNullLogger())
		}
		receiving, sending := transport(inboundLayer{follower}), transport(leader)
		end := make(chan struct{})
		sent := make(chan error, 1)
		go func() {
			const size = 1 << 30 // so the leader has hours to send it
			snapshot := &stallingSnapshot{head: strings.NewReader(strings.Repeat("s", 1<<20)), end: end}
			sent <- sending.InstallSnapshot("b", "b", &raft.InstallSnapshotRequest{Size: size}, &raft.InstallSnapshotResponse{}, snapshot)
		}()
		rpc := <-receiving.Consumer()
		begin := time.Now()
		type copied struct {
			bytes int64
			err   error
		}
		got := make(chan copied, 1)
		go func() { // like Raft's main loop
			n, err := io.Copy(io.Discard, rpc.Reader)
			rpc.Respond(&raft.InstallSnapshotResponse{}, err)
			got <- copied{n, err}
		}()
		select {
		case c := <-got:
			if c.err == nil || c.bytes == 0 {
				t.Errorf("got %d bytes and error %v, want some and an error", c.bytes, c.err)
			}
			if took := time.Since(begin); took != raftStallMax {
				t.Errorf("given up after %s, want %s", took, raftStallMax)
			}
		case <-time.After(time.Hour):
			t.Error("a snapshot of which nothing comes any more is still waited for after an hour")
		}
		close(end)
		if err := <-sent; err == nil {
			t.Error("the leader takes the snapshot for installed")
		}
		for _, tr := range []*raft.NetworkTransport{sending, receiving} {
			if err := tr.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// The leader must not send a byte now and then either: it would hold this node up for
// hours.
func TestRaftInbound_messageThatCrawls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		there, here := net.Pipe()
		c := &raftInbound{Conn: here}
		const rest = raftStallMax / 3
		sent := make(chan error)
		go func() {
			_, err := there.Write(make([]byte, 4*raftStallBytes)) // each of these bytes in time
			for i := 0; i < 100 && err == nil && pause.For(t.Context(), rest); i++ {
				_, err = there.Write([]byte("s"))
			}
			_ = there.Close()
			sent <- err
		}()
		begin := time.Now()
		read, err := io.Copy(io.Discard, c)
		if took := time.Since(begin); err == nil || took != raftStallMax {
			t.Errorf("given up after %s and %d bytes with error %v, want %s", took, read, err, raftStallMax)
		}
		if err := <-sent; err == nil {
			t.Error("the leader goes on")
		}
	})
}

// A connection that is kept for the next message may be silent for any time, and so may
// this node be before it answers.
func TestRaftInbound_silenceBetweenMessages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		there, here := net.Pipe()
		c := &raftInbound{Conn: here}
		const silence = 24 * time.Hour
		go func() {
			b := make([]byte, 1)
			for range 2 {
				pause.For(t.Context(), silence)
				_, _ = there.Write([]byte("ask")) // until all of it is read
				_, _ = there.Read(b)
			}
			pause.For(t.Context(), silence)
			_ = there.Close()
		}()
		b := make([]byte, 2)
		for i := range 2 {
			for _, want := range []int{2, 1} {
				if n, err := c.Read(b); n != want || err != nil {
					t.Fatalf("message %d: got %d bytes and error %v, want %d", i+1, n, err, want)
				}
			}
			pause.For(t.Context(), silence)
			if _, err := c.Write([]byte("y")); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.Read(b); !errors.Is(err, io.EOF) {
			t.Errorf("at the end: got %v, want EOF", err)
		}
	})
}
