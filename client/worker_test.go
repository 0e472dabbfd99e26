package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claimq/claimq/api/wire"
)

// mail holds the parameters of the tests' tasks.
type mail struct {
	To string `json:"to"`
}

// handled runs a worker with one handler of mail until it is idle, and returns the task with id 1.
func handled(t *testing.T, o *office, fn func(context.Context, *Job[mail]) error, opts ...HandlerOption) officeTask {
	t.Helper()
	runWorker(t, o, WorkerConfig{}, func(w *Worker) { Handle(w, "mail", fn, opts...) }, func(t *testing.T, r *running) {})
	return o.task(1)
}

func TestWorker_completes(t *testing.T) {
	t.Parallel()
	o := newOffice(wire.Task{})
	got := handled(t, o, func(_ context.Context, job *Job[mail]) error {
		if job.Params.To != "ada" || job.Token != 1 || job.Attempt != 1 || job.Task.ID != "1" {
			return fmt.Errorf("job is %+v", job)
		}
		job.SetResult(map[string]bool{"sent": true})
		job.Then(Task{Payload: []byte(`"first"`)})
		job.Then(Task{Payload: []byte(`"second"`)})
		return nil
	})
	if got.Status != "completed" || string(got.Result) != `{"sent":true}` || fmt.Sprint(got.submitted) != `["first" "second"]` {
		t.Errorf("the task is %s, %s, %v %s", got.Status, got.Result, got.submitted, got.Error)
	}
	// The call that asks for the next task completed it.
	if next := o.sent("/complete")[0].field(t, "claim"); next == nil {
		t.Error("the complete does not claim")
	}
}

func TestWorker_settlesByWhatTheHandlerReturns(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	tests := map[string]struct {
		err       error
		panic     any
		status    string
		error     string // a part of it
		permanent bool
		delay     int64 // ms; -1: none was sent
		attempts  int32
	}{
		"nil":                    {status: "completed", attempts: 1},
		"permanent":              {err: fmt.Errorf("no such address: %w", Permanent(boom)), status: "failed", error: "no such address: boom", permanent: true, delay: -1, attempts: 1},
		"retry after":            {err: RetryAfter(90*time.Second, boom), status: "failed", error: "boom", delay: 90_000, attempts: 1},
		"retry at once":          {err: RetryAfter(0, boom), status: "failed", error: "boom", delay: 0, attempts: 1},
		"snooze":                 {err: fmt.Errorf("not yet: %w", Snooze(time.Minute)), status: "released", delay: 60_000},
		"panic":                  {panic: "lost my pen", status: "failed", error: "panic: lost my pen\n\ngoroutine", delay: 7000, attempts: 1},
		"panic with the stack":   {panic: boom, status: "failed", error: "client.TestWorker_settlesByWhatTheHandlerReturns", delay: 7000, attempts: 1},
		"panic with a permanent": {panic: Permanent(boom), status: "failed", error: "boom", permanent: true, delay: -1, attempts: 1},
		"any other error":        {err: boom, status: "failed", error: "boom", delay: 7000, attempts: 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(wire.Task{})
			retry := func(task *Task, err error) time.Duration {
				if task.ID != "1" || err == nil || test.err != nil && !errors.Is(err, boom) {
					t.Errorf("the retry of %v after %v", task, err)
				}
				return time.Duration(task.Attempts) * 7 * time.Second
			}
			runWorker(t, o, WorkerConfig{Retry: retry}, func(w *Worker) {
				Handle(w, "mail", func(_ context.Context, job *Job[mail]) error {
					job.SetResult("result")
					job.Then(Task{Payload: []byte(`1`)})
					if test.panic != nil {
						panic(test.panic)
					}
					return test.err
				})
			}, func(*testing.T, *running) {})
			got := o.task(1)
			if got.Status != test.status || got.permanent != test.permanent || got.delay != test.delay || got.Attempts != test.attempts || !strings.Contains(got.Error, test.error) {
				t.Errorf("the task is %s, permanent %v, delay %d, attempts %d: %s", got.Status, got.permanent, got.delay, got.Attempts, got.Error)
			}
			if n := len(got.submitted); n != 0 && test.status != "completed" {
				t.Errorf("%d follow-up tasks were submitted", n)
			}
		})
	}
}

func TestWorker_failsForGoodWhatDoesNotDecode(t *testing.T) {
	t.Parallel()
	got := handled(t, newOffice(wire.Task{Params: json.RawMessage(`{"to":7}`)}), func(context.Context, *Job[mail]) error {
		t.Error("the handler is called")
		return nil
	})
	if !got.permanent || !strings.Contains(got.Error, "parameters do not decode into client.mail") || !strings.Contains(got.Error, "number") {
		t.Errorf("permanent %v: %s", got.permanent, got.Error)
	}
}

func TestHandle_handsBytesOverAsTheyAre(t *testing.T) {
	t.Parallel()
	o := newOffice(wire.Task{Payload: []byte{0xff, 0}}, wire.Task{TaskType: "raw", Params: json.RawMessage(`{"a":1}`)})
	runWorker(t, o, WorkerConfig{}, func(w *Worker) {
		Handle(w, "mail", func(_ context.Context, job *Job[[]byte]) error {
			job.SetResult(fmt.Appendf(nil, "%x", job.Params))
			return nil
		})
		Handle(w, "raw", func(_ context.Context, job *Job[json.RawMessage]) error { job.SetResult(job.Params); return nil })
	}, func(*testing.T, *running) {})
	if a, b := o.task(1), o.task(2); string(a.ResultPayload) != "ff00" || string(b.Result) != `{"a":1}` {
		t.Errorf("results %s and %s", a.ResultPayload, b.Result)
	}
}

func TestWorker_refusedCompletesFailForGood(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		set   func(*Job[mail])
		fault wire.Code
		error string
	}{
		"a result that is no JSON": {set: func(j *Job[mail]) { j.SetResult(make(chan int)) }, error: "unsupported type: chan int"},
		"a malformed follow-up":    {set: func(j *Job[mail]) { j.Then(Task{}) }, error: "the payload is empty"},
		"too large":                {set: func(j *Job[mail]) { j.SetResult("long") }, fault: wire.CodePayloadTooLarge, error: "completing was refused"},
		"not allowed":              {set: func(j *Job[mail]) {}, fault: wire.CodeForbidden, error: "completing was refused"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(wire.Task{})
			o.fault = func(r request, before bool) reply {
				if before && test.fault != "" && strings.HasSuffix(r.path, "/complete") {
					return refuses(test.fault)
				}
				return nil
			}
			got := handled(t, o, func(_ context.Context, job *Job[mail]) error { test.set(job); return nil })
			if got.Status != "failed" || !got.permanent || !strings.Contains(got.Error, test.error) {
				t.Errorf("the task is %s, permanent %v: %s", got.Status, got.permanent, got.Error)
			}
		})
	}
}

// A handler that ends its goroutine, as FailNow of a test does, does not stop the worker.
func TestWorker_outlivesGoexit(t *testing.T) {
	t.Parallel()
	o := newOffice(wire.Task{}, wire.Task{})
	runWorker(t, o, WorkerConfig{Concurrency: 1}, func(w *Worker) {
		Handle(w, "mail", func(_ context.Context, job *Job[mail]) error {
			if job.Task.ID == "1" {
				goexit()
			}
			return nil
		})
	}, func(*testing.T, *running) {})
	if a, b := o.task(1), o.task(2); !strings.Contains(a.Error, "Goexit") || b.Status != "completed" {
		t.Errorf("%s %s, %s", a.Status, a.Error, b.Status)
	}
}

// gauge counts handlers that run at the same time.
type gauge struct {
	mu          sync.Mutex
	now, most   map[string]int
	all, atMost int
}

func (g *gauge) enter(what string) (leave func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.now == nil {
		g.now, g.most = map[string]int{}, map[string]int{}
	}
	g.now[what]++
	g.all++
	g.most[what] = max(g.most[what], g.now[what])
	g.atMost = max(g.atMost, g.all)
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.now[what]--
		g.all--
	}
}

// The worker never holds more tasks than it has slots, in total and per type.
func TestWorker_claimsWhatItHasSlotsFor(t *testing.T) {
	t.Parallel()
	o := newOffice()
	for i := range 60 {
		o.add(wire.Task{TaskType: []string{"a", "b", "c"}[i%3]})
	}
	var g gauge
	held := map[string]int{}
	o.fault = func(r request, before bool) reply {
		if before {
			return nil
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		now := map[string]int{}
		for _, task := range o.tasks {
			if task.Status == "claimed" {
				now[task.TaskType]++
				now["all"]++
			}
		}
		for name, n := range now {
			held[name] = max(held[name], n)
		}
		return nil
	}
	handle := func(ctx context.Context, job *Job[mail]) error {
		defer g.enter(job.Task.TaskType)()
		<-time.After(time.Second)
		return nil
	}
	runWorker(t, o, WorkerConfig{Concurrency: 8}, func(w *Worker) {
		Handle(w, "a", handle)
		Handle(w, "b", handle, WithConcurrency(2))
		Handle(w, "c", handle, WithConcurrency(3))
	}, func(*testing.T, *running) { <-time.After(time.Minute) })
	if g.atMost != 8 || g.most["b"] != 2 || g.most["c"] != 3 {
		t.Errorf("handlers at the same time: %d, %v", g.atMost, g.most)
	}
	if held["all"] > 8 || held["b"] > 2 || held["c"] > 3 {
		t.Errorf("held at the same time: %v", held)
	}
	for i := range o.tasks {
		if got := o.task(i + 1); got.Status != "completed" || got.Attempts != 1 {
			t.Errorf("task %d is %s after %d attempts", i+1, got.Status, got.Attempts)
		}
	}
}

// The worker does not ask for types without a handler or a free slot.
func TestWorker_asksForTypesItHasRoomFor(t *testing.T) {
	t.Parallel()
	o := newOffice(wire.Task{TaskType: "slow"}, wire.Task{TaskType: "slow"}, wire.Task{TaskType: "other"})
	runWorker(t, o, WorkerConfig{Lease: 10 * time.Second}, func(w *Worker) {
		Handle(w, "slow", func(context.Context, *Job[mail]) error { <-time.After(4 * time.Second); return errors.New("no") }, WithConcurrency(1))
		Handle(w, "fast", func(context.Context, *Job[mail]) error { return nil })
	}, func(t *testing.T, r *running) {
		calls := o.sent("/claim")
		if a, b := fmt.Sprint(calls[0].field(t, "task_types")), fmt.Sprint(calls[1].field(t, "task_types")); a != "[fast slow]" || b != "[fast]" {
			t.Errorf("asked for %s, then %s", a, b)
		}
		// The second slow task is claimed when the first has failed, although the waiting claim does not name its
		// type.
		<-time.After(4*time.Second + 200*time.Millisecond)
		if got := o.task(2); got.Status != "claimed" {
			t.Errorf("the second is %s", got.Status)
		}
		<-time.After(10 * time.Second)
	})
	if got := o.task(3); got.Status != "pending" {
		t.Errorf("a task without a handler is %s", got.Status)
	}
}

// A waiting claim asks for at most 6 s, or less with a short lease, in one request at a time.
func TestWorker_waitsInLongPolls(t *testing.T) {
	t.Parallel()
	for lease, want := range map[time.Duration]float64{0: 6_000, 10 * time.Second: 5_000, time.Hour: 6_000} {
		o := newOffice()
		runWorker(t, o, WorkerConfig{Lease: lease, Concurrency: 7}, func(w *Worker) {
			Handle(w, "mail", func(context.Context, *Job[mail]) error { return nil })
		}, func(t *testing.T, r *running) {
			<-time.After(60 * time.Second)
			calls := o.sent("/claim")
			if got := calls[0].field(t, "wait_ms"); got != want {
				t.Errorf("lease %v: waits %v ms, want %v", lease, got, want)
			}
			if n := len(calls); n > int(60_000/want)+1 {
				t.Errorf("lease %v: %d requests", lease, n)
			}
			if n := calls[0].field(t, "limit"); n != 7.0 {
				t.Errorf("limit %v", n)
			}
			if a, b := calls[0].field(t, "claim_request_id"), calls[1].field(t, "claim_request_id"); a == nil || a == b {
				t.Errorf("request ids %v, %v", a, b)
			}
		})
	}
}

// Claims with lost answers are repeated with the same request id, so that no task is claimed twice or left to expire.
func TestWorker_repeatsLostClaims(t *testing.T) {
	t.Parallel()
	o := newOffice(wire.Task{}, wire.Task{}, wire.Task{})
	lost := 0
	o.fault = func(r request, before bool) reply {
		if !before && strings.HasSuffix(r.path, "/claim") && lost < 40 {
			lost++
			return says(502, "")
		}
		return nil
	}
	runWorker(t, o, WorkerConfig{Concurrency: 2, Lease: time.Hour}, func(w *Worker) {
		Handle(w, "mail", func(context.Context, *Job[mail]) error { return nil })
	}, func(t *testing.T, r *running) { <-time.After(10 * time.Minute) })
	ids := map[any]bool{}
	for _, c := range o.sent("/claim")[:40] {
		ids[c.field(t, "claim_request_id")] = true
	}
	if len(ids) != 1 {
		t.Errorf("%d request ids", len(ids))
	}
	for i := range 3 {
		if got := o.task(i + 1); got.Status != "completed" || got.Attempts != 1 {
			t.Errorf("task %d is %s after %d attempts", i+1, got.Status, got.Attempts)
		}
	}
}

// If a lost claim could not be repeated before its lease ended, its task is claimed again.
func TestWorker_forgetsClaimsThatAreOver(t *testing.T) {
	t.Parallel()
	o := newOffice(wire.Task{})
	start := time.Time{}
	o.fault = func(r request, before bool) reply {
		if start.IsZero() {
			start = time.Now()
		}
		if !before && strings.HasSuffix(r.path, "/claim") && time.Since(start) < 3*time.Minute {
			return says(502, "")
		}
		return nil
	}
	runWorker(t, o, WorkerConfig{Lease: time.Minute}, func(w *Worker) {
		Handle(w, "mail", func(context.Context, *Job[mail]) error { return nil })
	}, func(t *testing.T, r *running) {
		<-time.After(10 * time.Minute)
		if err := r.Health(); err != nil {
			t.Errorf("health: %v", err)
		}
	})
	if got := o.task(1); fmt.Sprint(got.log) != "[claimed expired claimed completed]" {
		t.Errorf("the task is %s: %v", got.Status, got.log)
	}
}

// A task is completed once, and the next one claimed once, even if answers are lost.
func TestWorker_repeatsLostSettles(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"/complete", "/fail", "/release"} {
		o := newOffice(wire.Task{}, wire.Task{})
		lost := 0
		o.fault = func(r request, before bool) reply {
			if strings.HasSuffix(r.path, verb) && before == (lost%2 == 0) && lost < 9 {
				lost++
				return says(504, `{"success":false,"code":"outcome_unknown"}`)
			}
			return nil
		}
		err := map[string]error{"/fail": Permanent(errors.New("no")), "/release": Snooze(time.Hour)}[verb]
		runWorker(t, o, WorkerConfig{Concurrency: 1}, func(w *Worker) {
			Handle(w, "mail", func(context.Context, *Job[mail]) error { return err })
		}, func(t *testing.T, r *running) {
			<-time.After(time.Minute)
			if s := r.Stats(); s.Claimed != 2 || s.Completed+s.Failed+s.Released != 2 || s.Lost != 0 {
				t.Errorf("%s: %+v", verb, s)
			}
		})
		for i := range 2 {
			if got := o.task(i + 1); len(got.log) != 2 {
				t.Errorf("%s: task %d: %v", verb, i+1, got.log)
			}
		}
	}
}

func TestWorker_extendsAndGoesOnWithProgress(t *testing.T) {
	t.Parallel()
	o := newOffice(wire.Task{})
	runWorker(t, o, WorkerConfig{Lease: 9 * time.Second}, func(w *Worker) {
		Handle(w, "mail", func(ctx context.Context, job *Job[mail]) error {
			<-time.After(20 * time.Second)
			if err := job.Progress(ctx, map[string]int{"done": 2}); err != nil {
				return err
			}
			<-time.After(20 * time.Second)
			return ctx.Err()
		})
	}, func(t *testing.T, r *running) { <-time.After(time.Minute) })
	if got := o.task(1); got.Status != "completed" || string(got.Progress) != `{"done":2}` {
		t.Errorf("the task is %s, progress %s, %v", got.Status, got.Progress, got.log)
	}
	if n := len(o.sent("/extend")); n < 11 || n > 16 {
		t.Errorf("%d extends in 40 s", n)
	}
}

// If extends fail, the context ends before the lease, and nothing is sent after it.
func TestWorker_lostLease(t *testing.T) {
	t.Parallel()
	o := newOffice(wire.Task{})
	o.fault = func(r request, before bool) reply {
		if before && strings.HasSuffix(r.path, "/extend") {
			return says(503, "")
		}
		return nil
	}
	var lease time.Time
	runWorker(t, o, WorkerConfig{Lease: 10 * time.Second, Concurrency: 1}, func(w *Worker) {
		Handle(w, "mail", func(ctx context.Context, job *Job[mail]) error {
			lease = time.Now().Add(10 * time.Second)
			<-ctx.Done()
			if cause := context.Cause(ctx); !errors.Is(cause, ErrLeaseLost) {
				t.Errorf("the cause is %v", cause)
			}
			if left := time.Until(lease); left <= 0 || left > 2*time.Second {
				t.Errorf("the context ended %v before the lease", left)
			}
			return nil
		})
	}, func(t *testing.T, r *running) {
		<-time.After(9900 * time.Millisecond)
		if s := r.Stats(); s.Lost != 1 || s.Completed != 0 {
			t.Errorf("%+v", s)
		}
		if n := len(o.sent("/complete")); n != 0 {
			t.Errorf("%d completes", n)
		}
		o.mu.Lock()
		o.fault = nil
		o.mu.Unlock()
	})
}

// If the claim is taken away, the next extend ends the work.
func TestWorker_takenAway(t *testing.T) {
	t.Parallel()
	o := newOffice(wire.Task{})
	o.fault = func(r request, before bool) reply {
		if before && strings.HasSuffix(r.path, "/extend") {
			return refuses(wire.CodeStaleClaim)
		}
		return nil
	}
	runWorker(t, o, WorkerConfig{Lease: 9 * time.Second}, func(w *Worker) {
		start := time.Now()
		Handle(w, "mail", func(ctx context.Context, job *Job[mail]) error {
			if start.IsZero() {
				return nil
			}
			start = time.Time{}
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), ErrLeaseLost) {
				t.Errorf("the cause is %v", context.Cause(ctx))
			}
			return nil
		})
	}, func(t *testing.T, r *running) {
		<-time.After(4 * time.Second)
		if got := o.task(1); r.Stats().Lost != 1 || len(o.sent("/complete")) != 0 || got.Status != "claimed" {
			t.Errorf("%+v, %s", r.Stats(), got.Status)
		}
	})
}

// A handler does not start with a claim whose lease is about to end, because the process may have been paused since
// the claim.
func TestWorker_beginsNothingAfterTheLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(wire.Task{})
		c := o.client(t)
		defer c.Close()
		w, err := NewWorker(c, WorkerConfig{ID: "w1"})
		if err != nil {
			t.Fatal(err)
		}
		Handle(w, "mail", func(context.Context, *Job[mail]) error { t.Error("it begins"); return nil })
		if err := w.begin(); err != nil {
			t.Fatal(err)
		}
		cl, err := c.ClaimNext(t.Context(), ClaimRequest{WorkerID: "w1", Types: []string{"mail"}, Lease: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(9600 * time.Millisecond) // the lease has 0.4 s left
		r := newWorkerRun(t.Context(), w)
		defer r.end()
		if a := r.attempt(cl); a != nil || w.Stats().Lost != 1 {
			t.Errorf("%v, %+v", a, w.Stats())
		}
	})
}

func TestWorker_cancelRequested(t *testing.T) {
	t.Parallel()
	for name, progress := range map[string]bool{"by an extend": false, "by progress": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(wire.Task{})
			o.tasks[0].CancelRequested = true
			got := handled(t, o, func(ctx context.Context, job *Job[mail]) error {
				start := time.Now()
				if progress {
					if err := job.Progress(ctx, nil); err != nil {
						return err
					}
				}
				<-ctx.Done()
				if after := time.Since(start); progress && after > 0 || after > 11*time.Second {
					t.Errorf("after %v", after)
				}
				return fmt.Errorf("stopped: %w", context.Cause(ctx))
			})
			if got.Status != "failed" || got.Error != "stopped: cancel requested" {
				t.Errorf("%s %s", got.Status, got.Error)
			}
		})
	}
}

func TestWorker_timeout(t *testing.T) {
	t.Parallel()
	o := newOffice(wire.Task{}, wire.Task{TaskType: "own"}, wire.Task{TaskType: "done"}, wire.Task{TaskType: "exits"})
	runWorker(t, o, WorkerConfig{Timeout: time.Minute}, func(w *Worker) {
		wait := func(ctx context.Context, job *Job[mail]) error {
			<-ctx.Done()
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) || !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
				t.Errorf("ends with %v, %v", ctx.Err(), context.Cause(ctx))
			}
			switch job.Task.TaskType {
			case "done":
				return nil
			case "exits":
				goexit()
			}
			return ctx.Err()
		}
		Handle(w, "mail", wait)
		Handle(w, "own", wait, WithTimeout(2*time.Second))
		Handle(w, "done", wait, WithTimeout(time.Second))
		Handle(w, "exits", wait, WithTimeout(time.Second))
	}, func(t *testing.T, r *running) { <-time.After(2 * time.Minute) })
	for id, want := range map[int]string{1: "the attempt took more than 1m0s: context deadline exceeded", 2: "the attempt took more than 2s: context deadline exceeded", 3: "", 4: "the attempt took more than 1s: " + errNoReturn.Error()} {
		if got := o.task(id); got.Error != want {
			t.Errorf("task %d: %s %q", id, got.Status, got.Error)
		}
	}
}

// A handler that ignores its timeout keeps its slot, but loses its claim.
func TestWorker_ignoredTimeout(t *testing.T) {
	t.Parallel()
	o := newOffice(wire.Task{})
	runWorker(t, o, WorkerConfig{Timeout: 5 * time.Second, StopWait: 10 * time.Second, Concurrency: 1}, func(w *Worker) {
		Handle(w, "mail", func(_ context.Context, job *Job[mail]) error {
			if job.Attempt == 1 {
				<-time.After(10 * time.Minute)
			}
			return nil
		})
	}, func(t *testing.T, r *running) {
		<-time.After(9 * time.Minute)
		if got := o.task(1); got.Status != "pending" || r.Stats().Running != 1 {
			t.Errorf("%s, %+v", got.Status, r.Stats())
		}
		<-time.After(2 * time.Minute)
		if got := o.task(1); got.Status != "completed" || fmt.Sprint(got.log) != "[claimed expired claimed completed]" || r.Stats().Lost != 1 {
			t.Errorf("%v, %+v", got.log, r.Stats())
		}
	})
}

// An endless Timeout or StopWait keeps the claim.
func TestWorker_endlessTimes(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]WorkerConfig{
		"timeout":   {Timeout: math.MaxInt64},
		"stop wait": {Timeout: 5 * time.Second, StopWait: math.MaxInt64},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(wire.Task{})
			runWorker(t, o, cfg, func(w *Worker) {
				Handle(w, "mail", func(ctx context.Context, job *Job[mail]) error {
					<-time.After(10 * time.Minute)
					return job.Progress(context.WithoutCancel(ctx), 1)
				})
			}, func(t *testing.T, _ *running) { <-time.After(11 * time.Minute) })
			if got := o.task(1); fmt.Sprint(got.log) != "[claimed completed]" {
				t.Errorf("%v, %s", got.log, got.Error)
			}
		})
	}
}
