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
)

const (
	// awaitMax is how long Await waits, by the program's time, before it fails the test.
	awaitMax = 30 * time.Second
	// closeMax is how long Close waits for the requests that are being answered.
	closeMax = 30 * time.Second
	// sleepMax is for how long a goroutine of fasthttp sleeps that looks after idle ones.
	sleepMax = 10*time.Second + time.Millisecond
)

// TB is what a Server needs of a test. *testing.T and *testing.B have it.
type TB interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// What keeps the Date of answers is a goroutine of the whole process, begun by the first answer:
// here, so that it is in no bubble of testing/synctest, which would wait for its end.
var _ = new(fasthttp.ResponseHeader).Header()

// Server is a claimq server in memory. Its methods are safe for concurrent use.
type Server struct {
	t        TB
	node     *node
	api      *api.Server
	entrance *entrance
	client   *client.Client

	served  chan error // what Serve returned
	ticking sync.WaitGroup
	endTick context.CancelFunc
	close   sync.Once
}

// Option changes how New makes a server.
type Option func(*options)

type options struct {
	start   time.Time
	ticking bool // from start on, which is then now
}

// Start is where the clock of a server begins: 2026-01-01T00:00:00Z.
func Start() time.Time { return time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC) }

// StartAt lets the clock begin at t, to the millisecond, in place of Start. It is
// not before 1970.
func StartAt(t time.Time) Option { return func(o *options) { o.start, o.ticking = t, false } }

// Ticking lets the clock begin at time.Now and go on as that does, by itself: in a bubble of
// testing/synctest what comes due does so while the test sleeps. Advance moves it on beside.
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
	n, err := newNode(o.start)
	if err != nil {
		return nil, err
	}
	if o.ticking {
		n.begun = o.start
	}
	server, err := api.New(api.Config{Node: n, Version: "clienttest", AdvertisedHosts: []string{memoryHost}})
	if err != nil {
		return nil, err
	}
	s := &Server{t: t, node: n, api: server, entrance: newEntrance(), served: make(chan error, 1)}
	// A key, lest the program's environment has one: the server takes any.
	s.client, err = client.New(client.Config{Endpoints: []string{n.url}, APIKey: "clienttest", Dial: s.entrance.dial})
	if err != nil {
		return nil, err
	}
	go func() { s.served <- server.Serve(s.entrance) }()
	ctx, end := context.WithCancel(context.Background())
	s.endTick = end
	if o.ticking {
		s.ticking.Go(func() { n.tick(ctx) })
	}
	return s, nil
}

// Client returns a client of the server, the same each time, over connections within the
// process. Close closes it; a program that closes its client gets one of its own, by client.New
// with URL, or with Dial.
func (s *Server) Client() *client.Client { return s.client }

// URL returns where the server listens, as http://127.0.0.1:port: an endpoint for
// client.Config, for CLAIMQ_ENDPOINTS, for any other client. The first call opens the port;
// when it cannot, the test fails at once: URL is called by the test's own goroutine.
func (s *Server) URL() string {
	s.t.Helper()
	addr, err := s.entrance.listen()
	if err != nil {
		s.t.Fatalf("clienttest: %v", err)
	}
	return "http://" + addr
}

// Dial connects to the server within the process, whatever the address: it is for
// client.Config, with any endpoint whose host is clienttest or localhost.
func (s *Server) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return s.entrance.dial(ctx, network, address)
}

// Now returns what the server's clock says, in UTC.
func (s *Server) Now() time.Time {
	s.t.Helper()
	now, err := s.node.now()
	if err != nil {
		s.t.Errorf("clienttest: %v", err)
	}
	return now
}

// Advance moves the server's clock on by d, rounded up to a millisecond, and does what
// comes due on the way, in order, before it returns. Waiting claims are given what
// they waited for. Of more than 100,000 moments at which something is due it takes
// so many one by one, and the rest at once. A negative d fails the test and moves nothing.
func (s *Server) Advance(d time.Duration) {
	s.t.Helper()
	if d < 0 {
		s.t.Errorf("clienttest: Advance(%v): time does not go back", d)
		return
	}
	if err := s.node.advance(d); err != nil {
		s.t.Errorf("clienttest: Advance(%v): %v", d, err)
	}
}

// Await waits until the task has the status, and returns it as it was read then. What
// a worker does comes some time, as ever, after the handler returned: a test awaits it
// before it advances. When it has not come after 30 seconds, or the task is not there,
// the test fails at once: Await is called by the test's own goroutine.
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
		news := s.node.nextEntry()
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

// Close closes the client, answers the requests that wait with shutting_down, and
// returns when all requests have been answered and nothing serves any more. One
// goroutine of fasthttp, which sleeps, ends within ten seconds: a test that looks for
// leaks has to allow it. In a bubble of testing/synctest, where it costs no time, Close waits
// for that, too. Close may be called twice; the end of the test calls it.
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

// inBubble reports whether the calling goroutine is in a bubble of testing/synctest, which only
// its stack says.
func inBubble() bool {
	stack := make([]byte, 256)
	first, _, _ := bytes.Cut(stack[:runtime.Stack(stack, false)], []byte("\n"))
	return bytes.Contains(first, []byte("synctest bubble"))
}
