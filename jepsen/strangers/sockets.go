package strangers

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math/rand"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/claimq/claimq/internal/pause"
)

const (
	// resetShare of a hundred requests are reset after they were sent, at most resetMax later.
	resetShare = 35
	resetMax   = 3 * time.Millisecond
	// answerMax bounds an answer.
	answerMax = 32 << 20
)

// errReset is returned for a request whose connection was reset.
var errReset = errors.New("the caller has reset its connection")

// sockets makes each request on a new connection, and resets some, so that their answers
// cannot be written.
type sockets struct {
	ground *Ground
	mu     sync.Mutex
	rng    *rand.Rand // guarded by mu
}

func openSockets(g *Ground, seed int64) (http.RoundTripper, error) {
	return &sockets{ground: g, rng: rand.New(rand.NewSource(seed))}, nil
}

// draw decides whether and when a request is reset.
func (s *sockets) draw() (reset bool, after time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rng.Intn(100) < resetShare, time.Duration(s.rng.Int63n(int64(resetMax)))
}

// RoundTrip makes one request.
func (s *sockets) RoundTrip(r *http.Request) (*http.Response, error) {
	dial := s.ground.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	conn, err := dial(r.Context(), "tcp", r.URL.Host)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	if deadline, ok := r.Context().Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return nil, err
		}
	}
	if err := r.Write(conn); err != nil {
		return nil, err
	}
	if reset, after := s.draw(); reset {
		pause.For(r.Context(), after)
		if tcp, ok := conn.(*net.TCPConn); ok {
			return nil, errors.Join(errReset, tcp.SetLinger(0)) // Close then resets it
		}
	}
	return read(conn, r)
}

// read reads a whole answer.
func read(from io.Reader, r *http.Request) (*http.Response, error) {
	resp, err := http.ReadResponse(bufio.NewReader(from), r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, answerMax))
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}
