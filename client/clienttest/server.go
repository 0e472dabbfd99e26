package clienttest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"runtime"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api"
	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/memnode"
)

const (
	// awaitMax limits, in the program's time, how long Await waits before it fails the test.
	awaitMax = 30 * time.Second
	// closeMax limits how long Close waits for requests that are being answered.
	closeMax = 30 * time.Second
	// sleepMax covers the sleep of the fasthttp goroutine that closes idle workers.
	sleepMax = 10*time.Second + time.Millisecond
)

// TB is the part of *testing.T and *testing.B that a Server needs.
type TB interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// The first answer of a process starts a goroutine that keeps the Date header. Start it here, outside of any bubble
// of testing/synctest, which would wait for its end.
var _ = new(fasthttp.ResponseHeader).Header()

// Server is an in-memory claimq server. Its methods are safe for concurrent use.
type Server struct {
	t        TB
	node     *memnode.Node
	api      *api.Server
	entrance *entrance
	client   *client.Client

	served  chan error // what Serve returned
	ticking sync.WaitGroup
	endTick context.CancelFunc
	close   sync.Once
}

// Option is a setting for New.
type Option func(*options)

type options struct {
	start   time.Time
	ticking bool // the clock follows time.Now
}

// Start is the initial time of a server: 2026-01-01T00:00:00Z.
func Start() time.Time { return time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC) }

// StartAt sets the initial time to t, to the millisecond, instead of Start. It must not be before 1970.
func StartAt(t time.Time) Option { return func(o *options) { o.start, o.ticking = t, false } }

// Ticking lets the clock begin at time.Now and follow it, so that in a bubble of testing/synctest everything due
// happens while the test sleeps. Advance moves it further.
func Ticking() Option { return func(o *options) { o.start, o.ticking = time.Now(), true } }

// New starts a server. It is closed when the test ends.
func New(t TB, opts ...Option) *Server {
	t.Helper()
	o := options{start: Start()}
	for _, opt := range opts {
		opt(&o)
	}
	s, err := start(t, o)
	if err != nil {
		t.Fatalf("clienttest: %v", err)
		return nil
	}
	t.Cleanup(s.Close)
	return s
}

func start(t TB, o options) (*Server, error) {
	n := memnode.New(memoryHost, "http://"+memoryHost, fsm.Stamp{T: o.start.UnixMilli()})
	if _, err := n.Propose(context.Background(), command.SetLevel{Level: fsm.FeatureLevel(), Defaults: fsm.FirstDefaults()}); err != nil {
		return nil, err
	}
	if o.ticking {
		n.FollowSince = o.start
	}
	server, err := api.New(api.Config{Node: n, Version: "clienttest", AdvertisedHosts: []string{memoryHost}})
	if err != nil {
		return nil, err
	}
	s := &Server{t: t, node: n, api: server, entrance: newEntrance(), served: make(chan error, 1)}
	// The server accepts any key. Setting one keeps the program's environment out of the test.
	s.client, err = client.New(client.Config{Endpoints: []string{n.URL}, APIKey: "clienttest", Dial: s.entrance.dial})
	if err != nil {
		return nil, err
	}
	go func() { s.served <- server.Serve(s.entrance) }()
	ctx, end := context.WithCancel(context.Background())
	s.endTick = end
	if o.ticking {
		s.ticking.Go(func() { n.Tick(ctx) })
	}
	return s, nil
}

// Client returns a client of the server, always the same, over connections within the process. Close closes it. A
// program that closes its client should make its own, by client.New with URL or Dial.
func (s *Server) Client() *client.Client { return s.client }

// URL returns the server's base URL, as http://127.0.0.1:port, for client.Config, CLAIMQ_ENDPOINTS or any other
// client. The first call opens the port. If it fails, the test fails at once, so call URL from the test's goroutine.
func (s *Server) URL() string {
	s.t.Helper()
	addr, err := s.entrance.listen()
	if err != nil {
		s.t.Fatalf("clienttest: %v", err)
	}
	return "http://" + addr
}

// Dial connects to the server within the process, whatever the address. Use it in client.Config, with an endpoint
// whose host is clienttest or localhost.
func (s *Server) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return s.entrance.dial(ctx, network, address)
}

// Now returns the server's time, in UTC.
func (s *Server) Now() time.Time {
	s.t.Helper()
	now, err := s.node.Now()
	if err != nil {
		s.t.Errorf("clienttest: %v", err)
	}
	return now
}

// Advance moves the server's clock forward by d, rounded up to a millisecond. Everything that becomes due happens in
// order before it returns, and waiting claims get their tasks. After 100,000 moments at which something is due, it
// handles the remaining ones at once. A negative d fails the test.
func (s *Server) Advance(d time.Duration) {
	s.t.Helper()
	if d < 0 {
		s.t.Errorf("clienttest: Advance(%v): time does not go back", d)
		return
	}
	if err := s.node.Advance(d); err != nil {
		s.t.Errorf("clienttest: Advance(%v): %v", d, err)
	}
}

// Await waits until the task has the status, and returns the task. Because a worker's calls come some time after its
// handler has returned, a test should await their effect before it advances the clock. If the status is not reached
// within 30 seconds, or the task does not exist, the test fails at once, so call Await from the test's goroutine.
func (s *Server) Await(taskID string, status client.TaskStatus) *client.Task {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), awaitMax)
	defer cancel()
	task, err := s.await(ctx, taskID, status)
	if err != nil {
		s.t.Fatalf("clienttest: await task %s %s: %v", taskID, status, err)
	}
	return task
}

func (s *Server) await(ctx context.Context, taskID string, status client.TaskStatus) (*client.Task, error) {
	for {
		news := s.node.NextEntry()
		task, err := s.client.Get(ctx, taskID)
		if err != nil || task.Status == status {
			return task, err
		}
		select {
		case <-news:
		case <-ctx.Done():
			return nil, fmt.Errorf("after %v it is %s, in attempt %d, with the error %q", awaitMax, task.Status, task.Attempts, task.Error)
		}
	}
}

// Close closes the client, answers waiting requests with shutting_down, and returns when all requests have been
// answered and the server has stopped. A sleeping goroutine of fasthttp ends within ten seconds after that; tests
// that look for leaked goroutines should ignore it. In a bubble of testing/synctest, where it costs no time, Close
// waits for it, too. Close may be called twice; the end of the test calls it.
func (s *Server) Close() {
	s.t.Helper()
	s.close.Do(func() {
		s.t.Helper()
		s.client.Close() //nolint:errcheck // it is nil
		s.endTick()
		s.ticking.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), closeMax)
		defer cancel()
		if err := s.api.Shutdown(ctx); err != nil {
			s.t.Errorf("clienttest: close: %v", err)
		}
		if err := <-s.served; err != nil {
			s.t.Errorf("clienttest: %v", err)
		}
		if inBubble() {
			<-time.After(sleepMax)
		}
	})
}

// inBubble reports whether the calling goroutine is in a bubble of testing/synctest. Only its stack tells.
func inBubble() bool {
	stack := make([]byte, 256)
	first, _, _ := bytes.Cut(stack[:runtime.Stack(stack, false)], []byte("\n"))
	return bytes.Contains(first, []byte("synctest bubble"))
}
