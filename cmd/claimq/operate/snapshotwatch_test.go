package operate

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/cmd/claimq/session"
)

func newTestTransfer(t *testing.T, silence, timeout time.Duration, endpoints ...string) *transfer {
	t.Helper()
	tr, err := newTransfer(&session.Flags{Endpoints: endpoints, Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	tr.silence = silence
	return tr
}

// silent listens like a paused process: clients can connect, but it never answers.
func silent(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return "http://" + l.Addr().String()
}

// When a node is silent, the next one is asked.
func TestTransfer_silentNode(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		io.WriteString(w, `{"success":false,"error":"No","code":"forbidden"}`)
	}))
	defer server.Close()
	_, _, err := newTestTransfer(t, 50*time.Millisecond, time.Hour, silent(t), server.URL).try(t.Context(), http.MethodGet, "/", nil)
	if !errors.Is(err, client.ErrForbidden) {
		t.Errorf("got %v", err)
	}
}

// A node that does not ask for the backup has none of it, so the next one is asked.
func TestTransfer_silentTaker(t *testing.T) {
	t.Parallel()
	var got atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		got.Store(n)
	}))
	defer server.Close()
	resp, sent, err := newTestTransfer(t, 50*time.Millisecond, time.Hour, silent(t), server.URL).try(t.Context(), http.MethodPost, "/", zeros(1000))
	if err != nil || got.Load() != 1000 {
		t.Fatalf("the second node got %d bytes; sent %t, %v", got.Load(), sent, err)
	}
	resp.Body.Close()
}

// If a node asks for the backup and then stops reading, the outcome is unknown.
func TestTransfer_takerStandsStill(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	over := make(chan struct{})
	go func() {
		defer close(over)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
			_, _ = io.WriteString(conn, "HTTP/1.1 100 Continue\r\n\r\n")
		}
		<-t.Context().Done()
		conn.Close()
	}()
	t.Cleanup(func() { <-over })
	_, sent, err := newTestTransfer(t, 100*time.Millisecond, time.Hour, "http://"+l.Addr().String()).try(t.Context(), http.MethodPost, "/", zeros(1<<30))
	var is silentError
	if !sent || !errors.As(err, &is) {
		t.Errorf("sent %t, %v", sent, err)
	}
}

// zeros returns a body of n zero bytes.
func zeros(n int64) *transferBody {
	return &transferBody{size: n, open: func() (io.ReadCloser, error) { return io.NopCloser(io.LimitReader(zero{}, n)), nil }}
}

type zero struct{}

func (zero) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// When the time is over, the error is a node's answer, not that another node is unreachable.
func TestTransfer_noLeader(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		io.WriteString(w, `{"success":false,"error":"No","code":"no_leader"}`)
	}))
	defer server.Close()
	down := httptest.NewServer(nil)
	down.Close()
	_, _, err := newTestTransfer(t, time.Hour, 50*time.Millisecond, server.URL, down.URL).try(t.Context(), http.MethodGet, "/", nil)
	if !errors.Is(err, client.ErrNoLeader) {
		t.Errorf("got %v", err)
	}
}

// If all nodes are silent, they are asked for as long as the flag says.
func TestTransfer_silentNodes(t *testing.T) {
	t.Parallel()
	_, _, err := newTestTransfer(t, time.Hour, 200*time.Millisecond, silent(t), silent(t)).try(t.Context(), http.MethodGet, "/", nil)
	var is silentError
	if !errors.As(err, &is) {
		t.Errorf("got %v", err)
	}
}

// A backup that stops in the middle ends with an error.
func TestTransfer_standsStill(t *testing.T) {
	t.Parallel()
	ctx, end := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "some")
		w.(http.Flusher).Flush()
		<-ctx.Done()
	}))
	defer server.Close()
	defer end()
	resp, _, err := newTestTransfer(t, 50*time.Millisecond, time.Hour, server.URL).try(t.Context(), http.MethodGet, "/", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	var is silentError
	if string(got) != "some" || !errors.As(err, &is) {
		t.Errorf("got %q, %v", got, err)
	}
}
