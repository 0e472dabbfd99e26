package api

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/sys/unix"

	"github.com/claimq/claimq/api/conntest"
	"github.com/claimq/claimq/api/nodetest"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// Sizes of the benchmarks in this file, which measure the CPU time of the thread.
const (
	largeTasks = 1_000_000
	largeTypes = 5000
	largeBatch = 1000
	// toAnn is the params of most of them.
	toAnn = `{"to":"ann@example.org"}`
	// largeSchedules is the number of schedules.
	largeSchedules = 100
)

// timedNode records how long each reader held its state.
type timedNode struct {
	*nodetest.Node
	held []time.Duration
}

func (n *timedNode) ReadLinearizable(ctx context.Context, minIndex uint64, fn func(*fsm.Machine, fsm.Stamp)) (uint64, error) {
	return n.ReadStale(ctx, minIndex, fn)
}

func (n *timedNode) ReadStale(ctx context.Context, minIndex uint64, fn func(*fsm.Machine, fsm.Stamp)) (uint64, error) {
	return n.Node.ReadStale(ctx, minIndex, func(m *fsm.Machine, now fsm.Stamp) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		begun := threadTime()
		fn(m, now)
		n.held = append(n.held, threadTime()-begun)
	})
}

// largeServer returns a server with a million tasks of 5,000 types with these params, of which claimed in ten were
// claimed. The claimed tasks of a type failed, were completed, or are still held, in turn; if all were claimed, all failed.
func largeServer(b *testing.B, claimed int, params string) (*Server, *timedNode) {
	b.Helper()
	node := &timedNode{Node: nodetest.New()}
	apply := func(commands ...command.Command) []fsm.Result {
		node.Advance(100)
		applied, err := node.Machine.Apply(node.Machine.Index()+1, command.AppendEntry(nil, node.Stamp, commands...))
		if err != nil {
			b.Fatal(err)
		}
		return applied.Results
	}
	apply(command.SetLevel{Level: fsm.FeatureLevel(), Defaults: fsm.FirstDefaults()})
	for i := range largeSchedules {
		apply(command.SetSchedule{Schedule: fsm.Schedule{Name: fmt.Sprint("schedule-", i), EveryMS: 3_600_000, Task: fsm.NewTask{Type: "type-0000", Params: []byte("1")}}})
	}
	tasks := make([]fsm.NewTask, largeBatch)
	for at := 0; at < largeTasks; at += largeBatch {
		for i := range tasks {
			tasks[i] = fsm.NewTask{Type: fmt.Sprintf("type-%04d", (at+i)%largeTypes), Params: []byte(params), MaxAttempts: 1}
		}
		apply(command.Submit{Tasks: tasks})
		var ends []command.Command
		for _, c := range apply(command.ClaimNext{WorkerID: fmt.Sprint("w", at/largeBatch%100), Limit: int32(largeBatch * claimed / 10), LeaseMS: 3_600_000})[0].Claims {
			hold := command.Hold{ID: c.Task.ID, WorkerID: c.Task.WorkerID, Token: c.Token}
			switch turn := c.Task.ID / largeTypes % 3; {
			case turn == 0 || claimed == 10:
				ends = append(ends, command.Fail{Hold: hold, Error: fmt.Sprintf("deliver to \"u%d@example.org\": error of kind %c: timeout after %d ms\nat mail.go:%d", c.Task.ID, 'a'+rune(c.Task.ID%40), c.Task.ID, c.Task.ID)})
			case turn == 1:
				ends = append(ends, command.Complete{Hold: hold, Result: []byte(`"sent"`)})
			}
		}
		apply(ends...)
	}
	s, err := New(Config{Node: node, Version: "v0.0.1"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Shutdown(context.Background()) })
	return s, node
}

// threadTime returns the CPU time of the calling thread, which other work on the machine affects only through the
// caches.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err) // every system has that clock
	}
	return time.Duration(t.Nano())
}

// times makes the call b.N times, and reports how long the server took for it and how long it held the state.
func (n *timedNode) times(b *testing.B, s *Server, path string) {
	var ctx fasthttp.RequestCtx
	ctx.Init2(conntest.Nop{}, nil, true)
	ctx.Request.SetRequestURI(path)
	ctx.Request.Header.SetHost("127.0.0.1:7400")
	n.held = n.held[:0]
	took := make([]time.Duration, 0, b.N)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for b.Loop() {
		ctx.Response.Reset()
		begun := threadTime()
		s.core.handle(&ctx, false)
		took = append(took, threadTime()-begun)
	}
	if ctx.Response.StatusCode() != fasthttp.StatusOK {
		b.Fatalf("%d %s", ctx.Response.StatusCode(), ctx.Response.Body())
	}
	b.ReportMetric(0, "ns/op") // it includes the time in which others had the CPU
	report(b, "took", took)
	report(b, "held", n.held)
	b.ReportMetric(float64(len(n.held))/float64(b.N), "locks")
}

// report reports the median and the 99th percentile of the measurements, if there are any.
func report(b *testing.B, what string, times []time.Duration) {
	slices.Sort(times)
	for _, percent := range []int{50, 99} {
		if n := len(times); n > 0 {
			b.ReportMetric(float64(times[n*percent/100])/float64(time.Millisecond), fmt.Sprintf("%s-p%d-ms", what, percent))
		}
	}
}

// BenchmarkOverview measures the calls of the page's overview, and others about all types. /metrics is gathered in
// other goroutines, so that only the time for which it held the state counts.
func BenchmarkOverview(b *testing.B) {
	s, node := largeServer(b, 6, toAnn)
	for _, path := range []string{
		"/api/types?order=oldest&limit=10", "/api/types?attention=true&order=oldest&limit=10", "/api/cluster", "/api/schedules", "/readyz",
		"/api/types?order=failed_per_s&limit=10", "/api/types?limit=200", "/api/failures", "/api/stats", "/metrics",
	} {
		b.Run(path, func(b *testing.B) { node.times(b, s, path) })
	}
}

// BenchmarkFailures measures a million failed tasks: grouping those of all types and of one, and the overview.
func BenchmarkFailures(b *testing.B) {
	s, node := largeServer(b, 10, toAnn)
	for _, path := range []string{"/api/failures", "/api/failures?task_type=type-0017", "/api/types?attention=true&order=oldest&limit=10"} {
		b.Run(path, func(b *testing.B) { node.times(b, s, path) })
	}
}

// BenchmarkSearch measures pages of a million waiting tasks with params of 256 bytes: searches that find nothing, another
// list that finds nothing, which look at 10,000 tasks each, and a list of 1,000 tasks.
func BenchmarkSearch(b *testing.B) {
	params := `{"to":"ann@example.org","text":"`
	s, node := largeServer(b, 0, params+strings.Repeat("x", 256-len(params+`"}`))+`"}`)
	for _, path := range []string{
		"/api/tasks?contains=ben@example.org", "/api/tasks?param=/to:ben@example.org", "/api/tasks?label=to:ben@example.org", "/api/tasks?limit=1000",
	} {
		b.Run(path, func(b *testing.B) { node.times(b, s, path) })
	}
}

// BenchmarkHistory measures the answer of GET /api/history for an hour, which the overview also requests.
func BenchmarkHistory(b *testing.B) {
	v := fsm.HistoryView{Since: nodetest.Start, From: nodetest.Start, To: nodetest.Start + historyMinutes*60_000, Kept: true}
	for i := range historyMinutes {
		n := uint32(i * 1000)
		v.Minutes = append(v.Minutes, fsm.Minute{
			Submitted: n, Completed: n, Failed: n, Pending: n, Claimed: n, OldestAt: nodetest.Start,
			Times: [2]fsm.Quantiles{{P50: 10, P99: 20}, {P50: 10, P99: 20}},
		})
	}
	var answer []byte
	for b.Loop() {
		answer = appendHistory(answer[:0], "", &v)
	}
}
