package serve

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/client/clienttest"
	"github.com/claimq/claimq/cmd/claimq/child"
)

// pipes is a listener to which programs connect that the test plays.
type pipes struct {
	conns chan net.Conn
	over  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.over:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	close(p.over)
	return nil
}

func (p *pipes) Addr() net.Addr { return nil }

// stage is a pool in a bubble of virtual time, whose programs the test plays.
type stage struct {
	t     *testing.T
	s     *clienttest.Server
	out   *output
	pipes *pipes
	cut   atomic.Bool // nothing that the worker sends arrives
}

// onStage runs a pool for act.
func onStage(t *testing.T, o Options, opts []clienttest.Option, act func(*stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g := &stage{t: t, s: clienttest.New(t, opts...), out: &output{}, pipes: &pipes{make(chan net.Conn), make(chan struct{})}}
		c, err := client.New(client.Config{Endpoints: []string{"http://clienttest"}, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := g.s.Dial(ctx, network, address)
			return &cuttable{conn, &g.cut}, err
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		o.Listen, o.Out, o.ID, o.Timeout, o.Counts = "unused", child.NewOutput(g.out), "w1", time.Hour, &Counts{}
		o.Processes = max(o.Processes, 1)
		o.Worker.StopWait, o.Worker.Logger = client.NoStopWait, slog.New(slog.DiscardHandler)
		ctx, stop := context.WithCancel(t.Context())
		over := make(chan error, 1)
		p := newPool(ctx, c, o)
		go func() {
			_, err := p.run(ctx, func(*client.Worker) {}, func() { p.accept(ctx, g.pipes) })
			over <- err
		}()
		act(g)
		stop()
		if err := <-over; err != nil {
			t.Errorf("it ended with %v", err)
		}
	})
}

// cuttable is a connection that swallows what is written while it is cut.
type cuttable struct {
	net.Conn
	cut *atomic.Bool
}

func (c *cuttable) Write(p []byte) (int, error) {
	if c.cut.Load() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// connect is a program's begin: it connects, and says hello.
func (g *stage) connect(concurrency int, types string) *speaker {
	g.t.Helper()
	ours, theirs := net.Pipe()
	g.pipes.conns <- theirs
	s := newSpeaker(ours)
	s.say(fmt.Sprintf(`{"kind":"hello","protocol":1,"types":[%s],"concurrency":%d}`, types, concurrency))
	if m := g.next(s); m.Kind != kindHello {
		g.t.Fatalf("it is greeted with %+v", m)
	}
	return s
}

// A hello need not name its client. The log says so then.
func TestPool_client(t *testing.T) {
	t.Parallel()
	const of = `{"kind":"hello","protocol":1,"types":[{"type":"job"}],"concurrency":1`
	for rest, want := range map[string]string{
		`,"client":"mine, version 3"}`: "in each of 1: mine, version 3\n", `}`: "in each of 1: a program whose hello does not name its client\n",
		`,"client":""}`: "in each of 1: a program whose hello does not name its client\n", `,"client":" "}`: "in each of 1: a program whose hello does not name its client\n",
		`,"client":"` + strings.Repeat("x", clientBytesMax+1) + `"}`: "it broke the protocol: client has more than 128 bytes: ",
		`,"client":7}`: "it broke the protocol: it is no message: ",
	} {
		onStage(t, Options{}, nil, func(g *stage) {
			ours, theirs := net.Pipe()
			g.pipes.conns <- theirs
			s := newSpeaker(ours)
			s.say(of + rest)
			g.next(s)
			synctest.Wait()
			if out := g.out.String(); !strings.Contains(out, want) {
				g.t.Errorf("after %.40s it says\n%s", rest, out)
			}
		})
	}
}

// heard is any message to a program.
type heard struct {
	taskMessage
	Why string `json:"why"`
}

// next returns the program's next message; its kind is "" if the connection has ended.
func (g *stage) next(s *speaker) (m heard) {
	g.t.Helper()
	if !s.lines.Scan() {
		if err := s.lines.Err(); err != nil {
			g.t.Fatal(err)
		}
		return m
	}
	if err := json.Unmarshal(s.lines.Bytes(), &m); err != nil {
		g.t.Fatalf("%q: %v", s.lines.Bytes(), err)
	}
	return m
}

// task is next, which must be a task.
func (g *stage) task(s *speaker) heard {
	g.t.Helper()
	m := g.next(s)
	if m.Kind != kindTask {
		g.t.Fatalf("it is told %+v, no task:\n%s", m, g.out)
	}
	return m
}

func (g *stage) submit(t client.Task) string {
	g.t.Helper()
	id, err := g.s.Client().Submit(g.t.Context(), t)
	if err != nil {
		g.t.Fatal(err)
	}
	return id
}

func job(attempts int) client.Task {
	return client.Task{TaskType: "job", Payload: []byte("1"), MaxAttempts: attempts}
}

func answer(s *speaker, of heard, kind, rest string) {
	s.say(fmt.Sprintf(`{"kind":%q,"id":%d,"token":%d%s}`, kind, of.ID, of.Token, rest))
}

// A program is told when the cluster has taken a claim back. What it answers then frees its place
// and counts for nothing.
func TestPool_leaseLost(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, nil, func(g *stage) {
		s := g.connect(1, `{"type":"job"}`)
		id := g.submit(job(3))
		first := g.task(s)
		g.s.Advance(time.Hour) // the lease ends, and the backoff
		if m := g.next(s); m.Kind != kindCancel || m.Why != "lease_lost" || m.Token != first.Token {
			g.t.Fatalf("it is told %+v", m)
		}
		answer(s, first, kindDone, `,"result":"old"`)
		second := g.task(s)
		if second.Token <= first.Token || second.Attempt != 2 {
			g.t.Errorf("after %+v it has %+v", first, second)
		}
		if got := g.s.Await(id, client.StatusClaimed); got.Result != nil {
			g.t.Errorf("the late answer counts: %s", got.Result)
		}
		answer(s, first, kindDone, `,"result":"once more"`)
		answer(s, second, kindDone, `,"result":"new"`)
		if got := g.s.Await(id, client.StatusCompleted); string(got.Result) != `"new"` {
			g.t.Errorf("the result is %s", got.Result)
		}
	})
}

// A program that goes on with a lost claim is ended 250 ms after it was told, but before
// somebody else can have the claim if that is sooner.
func TestPool_leaseLostUnheard(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lease time.Duration
		lose  func(*stage)
		ended time.Duration // after the program was told, at most
	}{
		"taken back":        {time.Minute, func(g *stage) { g.s.Advance(time.Hour) }, 250 * time.Millisecond},
		"cut off":           {time.Minute, func(g *stage) { g.cut.Store(true) }, 250 * time.Millisecond},
		"cut off, 1s lease": {time.Second, func(g *stage) { g.cut.Store(true) }, 50 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onStage(t, Options{Worker: client.WorkerConfig{Lease: c.lease}}, nil, func(g *stage) {
				s := g.connect(1, `{"type":"job"}`)
				g.submit(job(3))
				g.task(s)
				claimed := time.Now()
				c.lose(g)
				if m := g.next(s); m.Kind != kindCancel || m.Why != "lease_lost" {
					g.t.Fatalf("it is told %+v", m)
				}
				told := time.Now()
				if m := g.next(s); m.Kind != "" {
					g.t.Errorf("it is told %+v", m)
				}
				if took := time.Since(told); took > c.ended || took < c.ended-2*time.Millisecond {
					g.t.Errorf("it was ended %v after it was told, want %v", took, c.ended)
				}
				if g.cut.Load() && time.Since(claimed) > c.lease {
					g.t.Errorf("it was ended %v after its claim of %v", time.Since(claimed), c.lease)
				}
				g.cut.Store(false)
			})
		})
	}
}

// Lines of a program may have line_bytes, the line feed included.
func TestPool_longestLine(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]string{lineBytesMax: "", lineBytesMax + 1: "the program was ended: it broke the protocol: a line of more than 8388608 bytes\nit closed its socket"} {
		onStage(t, Options{}, nil, func(g *stage) {
			s := g.connect(1, `{"type":"job"}`)
			id := g.submit(job(1))
			task := g.task(s)
			head := fmt.Sprintf(`{"kind":"done","id":%d,"token":%d,"unknown":"`, task.ID, task.Token)
			s.say(head + strings.Repeat("x", size-len(head)-len("\"}\n")) + `"}`)
			status := client.StatusCompleted
			if want != "" {
				status = client.StatusFailed
			}
			if got := g.s.Await(id, status); got.Error != want {
				g.t.Errorf("of a line of %d bytes the error is %.300q", size, got.Error)
			}
		})
	}
}

// Messages beyond the other limits of the hello are cut or fail the task, as the hello says,
// and the program's next answer counts.
func TestPool_beyondLimits(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, nil, func(g *stage) {
		s := g.connect(1, `{"type":"job"}`)
		for _, c := range []struct {
			kind, rest string
			status     client.TaskStatus
			ok         func(*client.Task) bool
		}{
			{kindDone, `,"result":"` + strings.Repeat("r", valueBytesMax-2) + `"`, client.StatusCompleted, func(t *client.Task) bool { return len(t.Result) == valueBytesMax }},
			{kindDone, `,"result":"` + strings.Repeat("r", valueBytesMax-1) + `"`, client.StatusFailed, func(t *client.Task) bool { return strings.Contains(t.Error, "completing was refused") }},
			{kindFail, `,"error":"` + strings.Repeat("e", errorBytesMax+1) + `","permanent":true`, client.StatusFailed, func(t *client.Task) bool { return len(t.Error) == errorBytesMax }},
			{kindDone, `,"submit":[` + strings.Repeat(`{"task_type":"a","params":1},`, submitMax-1) + `{"task_type":"a","params":1}]`, client.StatusCompleted, func(*client.Task) bool { return len(g.s.Tasks("a")) == submitMax }},
			{kindDone, `,"submit":[` + strings.Repeat(`{"task_type":"b","params":1},`, submitMax) + `{"task_type":"b","params":1}]`, client.StatusFailed, func(*client.Task) bool { return len(g.s.Tasks("b")) == 0 }},
		} {
			id := g.submit(job(1))
			answer(s, g.task(s), c.kind, c.rest)
			if got := g.s.Await(id, c.status); !c.ok(got) {
				g.t.Errorf("after %.40s: result of %d bytes, error of %d: %.200s", c.rest, len(got.Result), len(got.Error), got.Error)
			}
		}
		id := g.submit(job(1))
		task := g.task(s)
		answer(s, task, kindProgress, `,"progress":"`+strings.Repeat("p", progressBytesMax)+`"`)
		synctest.Wait()
		answer(s, task, kindDone, "")
		if got := g.s.Await(id, client.StatusCompleted); len(got.Progress) < progressBytesMax/2 || len(got.Progress) > progressBytesMax {
			g.t.Errorf("progress has %d bytes", len(got.Progress))
		}
	})
}

// The longest task fits into a line; results of dependencies that do not are left out.
func TestPool_longestTask(t *testing.T) {
	t.Parallel()
	large := []byte(strings.Repeat("\xff", valueBytesMax))
	for _, count := range []int{4, 5} {
		onStage(t, Options{}, nil, func(g *stage) {
			s := g.connect(1, `{"type":"job"}`)
			var parent client.Task
			var names []string
			for i := range count {
				names = append(names, fmt.Sprintf("step-%d", i))
				parent.AddStep(names[i], client.Task{TaskType: "job", Payload: []byte("1")})
			}
			parent.AddStep("last", client.Task{TaskType: "job", Payload: large}, names...)
			g.submit(parent)
			for range count {
				task := g.task(s)
				encoded, err := json.Marshal(large)
				if err != nil {
					g.t.Fatal(err)
				}
				answer(s, task, kindDone, `,"result_payload":`+string(encoded))
			}
			last := g.task(s)
			if size := len(s.lines.Bytes()) + 1; size > lineBytesMax || string(last.Payload) != string(large) {
				g.t.Errorf("its line has %d bytes, its payload %d", size, len(last.Payload))
			}
			left := dependenciesMax/valueBytesMax < count
			if last.DependenciesLeftOut != left || !left && len(last.Dependencies) != count {
				g.t.Errorf("of %d dependencies it has %d, left out: %v", count, len(last.Dependencies), last.DependenciesLeftOut)
			}
			answer(s, last, kindDone, "")
		})
	}
}

// A payload arrives as bytes and params as JSON, as a result of bytes does to the step behind it, also where the bytes
// are JSON, or would be in another encoding.
func TestPool_bytes(t *testing.T) {
	t.Parallel()
	for _, payload := range []string{"1", `"\xff"`, "\xff"} {
		onStage(t, Options{}, nil, func(g *stage) {
			s := g.connect(1, `{"type":"job"}`)
			var parent client.Task
			parent.AddStep("bytes", client.Task{TaskType: "job", Payload: []byte(payload), Binary: true})
			parent.AddStep("json", client.Task{TaskType: "job", Payload: []byte("1")}, "bytes")
			parent.AddStep("last", client.Task{TaskType: "job", Payload: []byte("1")}, "bytes", "json")
			g.submit(parent)
			first := g.task(s)
			if first.Params != nil || string(first.Payload) != payload {
				g.t.Errorf("it has the params %q and the payload %q", first.Params, first.Payload)
			}
			answer(s, first, kindDone, fmt.Sprintf(`,"result_payload":%q`, base64.StdEncoding.EncodeToString([]byte(payload))))
			second := g.task(s)
			if string(second.Params) != "1" || second.Payload != nil {
				g.t.Errorf("it has the params %q and the payload %q", second.Params, second.Payload)
			}
			answer(s, second, kindDone, `,"result":1`)
			last := g.task(s)
			want := map[string]Result{"bytes": {ResultPayload: []byte(payload)}, "json": {Result: json.RawMessage("1")}}
			if diff := cmp.Diff(want, last.Dependencies); diff != "" {
				g.t.Errorf("dependencies (-want +got):\n%s", diff)
			}
			answer(s, last, kindDone, "")
		})
	}
}

// A task for which no program has room, as one has ended since it was claimed, is given back within
// a second, uncounted.
func TestPool_noRoom(t *testing.T) {
	t.Parallel()
	onStage(t, Options{Processes: 2}, nil, func(g *stage) {
		const types = `{"type":"job","concurrency":1},{"type":"other"}`
		one, two := g.connect(2, types), g.connect(2, types)
		_ = two.conn.Close()
		synctest.Wait()
		first := g.submit(job(1))
		task := g.task(one)
		second := g.submit(job(1))
		<-time.After(roomWait + time.Second)
		synctest.Wait()
		if got, err := g.s.Client().TaskEvents(g.t.Context(), second); err != nil {
			g.t.Fatal(err)
		} else if !slices.ContainsFunc(got, func(e client.Event) bool { return e.Event == "released" }) {
			g.t.Errorf("it was not given back: %+v", got)
		}
		answer(one, task, kindDone, "")
		g.s.Await(first, client.StatusCompleted)
		answer(one, g.task(one), kindDone, "")
		if got := g.s.Await(second, client.StatusCompleted); got.Attempts != 1 {
			g.t.Errorf("it was tried %d times", got.Attempts)
		}
	})
}

// A process that is of no use is begun again after a pause that grows, one that has worked at once.
func TestKeep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		begun, last := 0, time.Now()
		var pauses []time.Duration
		keepRunning(ctx, func() bool {
			if begun++; begun > 1 {
				pauses = append(pauses, time.Since(last))
			}
			last = time.Now()
			if begun == 14 {
				stop()
			}
			return begun == 11
		})
		ms := time.Millisecond
		want := []time.Duration{200 * ms, 400 * ms, 800 * ms, 1600 * ms, 3200 * ms, 6400 * ms, 12800 * ms, 25600 * ms, restartMax, restartMax, 0, 200 * ms, 400 * ms}
		if !slices.Equal(pauses, want) {
			t.Errorf("the pauses are %v, want %v", pauses, want)
		}
	})
}

// Programs may say what the cluster takes, and what a process can hold.
func TestLimitsOf(t *testing.T) {
	t.Parallel()
	whole := limits{lineBytesMax, valueBytesMax, errorBytesMax, progressBytesMax, submitMax}
	for name, c := range map[string]struct {
		of   *client.Limits
		want limits
	}{
		"it does not say": {nil, whole},
		"it takes more":   {&client.Limits{BodyBytes: 1 << 30, ValueBytes: 1 << 30, ErrorBytes: 1 << 30, Items: 1 << 30}, whole},
		"it takes less":   {&client.Limits{BodyBytes: 10_000, ValueBytes: 2_000, ErrorBytes: 100, Items: 5}, limits{10_000, 2_000, 100, progressBytesMax, 5}},
	} {
		if got := limitsOf(c.of); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
