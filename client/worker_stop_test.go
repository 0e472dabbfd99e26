package client

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claimq/claimq/api/wire"
)

func goexit() { runtime.Goexit() }

// After ctx's end nothing is claimed, and running handlers have StopWait to finish.
func TestWorker_stops(t *testing.T) {
	t.Parallel()
	o := newOffice(wire.Task{}, wire.Task{}, wire.Task{}, wire.Task{}, wire.Task{}, wire.Task{})
	runWorker(t, o, WorkerConfig{Concurrency: 5, StopWait: 10 * time.Second}, func(w *Worker) {
		Handle(w, "mail", func(ctx context.Context, job *Job[mail]) error {
			switch job.Task.ID {
			case "1": // finishes in time
				<-time.After(9 * time.Second)
				return ctx.Err()
			case "2": // stops
				<-ctx.Done()
				if !errors.Is(context.Cause(ctx), ErrShutdown) {
					t.Errorf("the cause is %v", context.Cause(ctx))
				}
				return ctx.Err()
			case "3": // finishes late
				<-ctx.Done()
				<-time.After(9 * time.Second)
				return nil
			case "4":
				<-ctx.Done()
				return Permanent(errors.New("for good"))
			default:
				<-ctx.Done()
				return RetryAfter(time.Second, errors.New("later"))
			}
		})
	}, func(t *testing.T, r *running) {
		r.stop()
		before := len(o.sent("/claim"))
		start := time.Now()
		if err := r.wait(); err != nil {
			t.Errorf("Run: %v", err)
		}
		if took := time.Since(start); took < 19*time.Second || took > 19*time.Second+time.Millisecond {
			t.Errorf("it took %v", took)
		}
		if n := len(o.sent("/claim")); n != before {
			t.Errorf("%d claims after the end", n-before)
		}
		for _, c := range o.sent("/complete") {
			if c.field(t, "claim") != nil {
				t.Errorf("%s claims after the end", c.path)
			}
		}
	})
	for id, want := range []string{1: "[claimed completed]", 2: "[claimed released]", 3: "[claimed completed]", 4: "[claimed failed]", 5: "[claimed failed]", 6: "[]"} {
		if id == 0 {
			continue
		}
		if got := o.task(id); fmt.Sprint(got.log) != want {
			t.Errorf("task %d: %v", id, got.log)
		}
	}
	if got := o.task(2); got.Attempts != 0 {
		t.Errorf("%d attempts were counted", got.Attempts)
	}
}

// StopNow ends the handlers' contexts without StopWait, as NoStopWait does; before Run it makes Run return.
func TestWorker_StopNow(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		stopWait time.Duration
		stop     func(*running)
		took     time.Duration
	}{
		"alone":                 {time.Hour, func(r *running) { r.StopNow() }, 0},
		"as the second stage":   {time.Hour, func(r *running) { r.stop(); <-time.After(time.Minute); r.StopNow(); r.StopNow() }, time.Minute},
		"without a wait anyway": {NoStopWait, func(r *running) { r.stop() }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(wire.Task{}, wire.Task{})
			var cause error
			runWorker(t, o, WorkerConfig{Concurrency: 1, StopWait: test.stopWait}, func(w *Worker) {
				Handle(w, "mail", func(ctx context.Context, _ *Job[mail]) error {
					<-ctx.Done()
					cause = context.Cause(ctx)
					return cause
				})
			}, func(t *testing.T, r *running) {
				start := time.Now()
				test.stop(r)
				if err := r.wait(); err != nil {
					t.Errorf("Run: %v", err)
				}
				if took := time.Since(start); took != test.took {
					t.Errorf("it took %v", took)
				}
			})
			if one, two := o.task(1), o.task(2); fmt.Sprint(one.log) != "[claimed released]" || two.Status != "pending" || !errors.Is(cause, ErrShutdown) {
				t.Errorf("%v, %s, the cause is %v", one.log, two.Status, cause)
			}
		})
	}
	o := newOffice(wire.Task{})
	runWorker(t, o, WorkerConfig{}, func(w *Worker) {
		Handle(w, "mail", func(context.Context, *Job[mail]) error { t.Error("a handler begins"); return nil })
		w.StopNow()
	}, func(t *testing.T, r *running) {
		if err := r.wait(); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// A handler that ignores its context is left behind: Run says so, and the claim is no longer extended.
func TestWorker_leavesBehind(t *testing.T) {
	t.Parallel()
	t.Run("returns late", func(t *testing.T) {
		t.Parallel()
		testLeavesBehind(t, func() {})
	})
	t.Run("ends its goroutine late", func(t *testing.T) {
		t.Parallel()
		testLeavesBehind(t, goexit)
	})
}

func testLeavesBehind(t *testing.T, atLast func()) {
	o := newOffice(wire.Task{})
	release := make(chan struct{})
	var late *Job[mail]
	runWorker(t, o, WorkerConfig{StopWait: time.Second}, func(w *Worker) {
		release = make(chan struct{})
		Handle(w, "mail", func(_ context.Context, job *Job[mail]) error {
			late = job
			<-release
			if err := job.Progress(context.Background(), 1); !errors.Is(err, ErrLeaseLost) {
				t.Errorf("progress of one that was left behind: %v", err)
			}
			job.SetResult("late")
			atLast()
			return nil
		})
	}, func(t *testing.T, r *running) {
		r.stop()
		start := time.Now()
		err := r.wait()
		if err == nil || !strings.Contains(err.Error(), "1 handler still running") || !strings.Contains(err.Error(), "task 1 (mail, attempt 1)") {
			t.Errorf("Run: %v", err)
		}
		if took := time.Since(start); took != 11*time.Second {
			t.Errorf("it took %v", took)
		}
		if n := r.Stats().Running; n != 0 {
			t.Errorf("%d handlers run by the counts", n)
		}
		before := len(o.paths())
		<-time.After(time.Minute)
		if got := o.task(1); got.Status != "pending" {
			t.Errorf("the task is %s", got.Status)
		}
		if n := len(o.paths()); n != before {
			t.Errorf("%d calls after Run: %v", n-before, o.paths()[before:])
		}
		close(release)
		<-time.After(time.Second)
		if n := len(o.paths()); n != before || late == nil {
			t.Errorf("%d calls of a handler that was left behind", n-before)
		}
	})
}

// A claim whose answer was under way when the worker was stopped is released.
func TestWorker_givesBackWhatItDidNotHearOf(t *testing.T) {
	t.Parallel()
	o := newOffice(wire.Task{}, wire.Task{}, wire.Task{})
	o.fault = func(r request, before bool) reply {
		if before || !strings.HasSuffix(r.path, "/claim") || len(o.sent("/claim")) > 1 {
			return nil
		}
		<-time.After(3 * time.Second) // the answer is under way
		return nil
	}
	runWorker(t, o, WorkerConfig{Concurrency: 2}, func(w *Worker) {
		Handle(w, "mail", func(context.Context, *Job[mail]) error { t.Error("a handler begins"); return nil })
	}, func(t *testing.T, r *running) {
		<-time.After(time.Second)
		r.stop()
		if err := r.wait(); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	for id, want := range []string{1: "[claimed released]", 2: "[claimed released]", 3: "[]"} {
		if id == 0 {
			continue
		}
		if got := o.task(id); fmt.Sprint(got.log) != want || got.Attempts != 0 {
			t.Errorf("task %d: %v", id, got.log)
		}
	}
}

// The same for a claim that reaches the leader after the worker was stopped and after the request that was to end its
// wait.
func TestWorker_givesBackWhatALateClaimGets(t *testing.T) {
	t.Parallel()
	o := newOffice()
	var claims atomic.Int64
	o.fault = func(r request, before bool) reply {
		if before && strings.HasSuffix(r.path, "/claim") && claims.Add(1) == 1 {
			<-time.After(1500 * time.Millisecond)
		}
		return nil
	}
	runWorker(t, o, WorkerConfig{Concurrency: 2}, func(w *Worker) {
		Handle(w, "mail", func(context.Context, *Job[mail]) error { t.Error("a handler begins"); return nil })
	}, func(t *testing.T, r *running) {
		<-time.After(time.Second)
		r.stop()
		<-time.After(300 * time.Millisecond)
		o.add(wire.Task{})
		if err := r.wait(); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	if got := o.tasks[0]; fmt.Sprint(got.log) != "[claimed released]" || got.Attempts != 0 {
		t.Errorf("the task is %s: %v", got.Status, got.log)
	}
}

// The same for a claim of a complete that is answered after the end.
func TestWorker_givesBackWhatACompleteClaimed(t *testing.T) {
	t.Parallel()
	o := newOffice(wire.Task{}, wire.Task{})
	o.fault = func(r request, before bool) reply {
		if !before && strings.HasSuffix(r.path, "/complete") {
			<-time.After(2 * time.Second) // the answer is under way
		}
		return nil
	}
	runWorker(t, o, WorkerConfig{Concurrency: 1}, func(w *Worker) {
		Handle(w, "mail", func(_ context.Context, job *Job[mail]) error {
			if job.Task.ID != "1" {
				t.Error("a handler begins after the end")
			}
			return nil
		})
	}, func(t *testing.T, r *running) { <-time.After(time.Second) })
	if got := o.task(2); fmt.Sprint(got.log) != "[claimed released]" || got.Attempts != 0 {
		t.Errorf("%v", got.log)
	}
}

// Run returns even if the cluster is gone.
func TestWorker_stopsWithoutACluster(t *testing.T) {
	t.Parallel()
	o := newOffice(wire.Task{})
	runWorker(t, o, WorkerConfig{StopWait: time.Second, Lease: time.Hour}, func(w *Worker) {
		Handle(w, "mail", func(ctx context.Context, job *Job[mail]) error { <-ctx.Done(); return nil })
	}, func(t *testing.T, r *running) {
		o.mu.Lock()
		o.fault = func(request, bool) reply { return refuses(wire.CodeNoLeader) }
		o.mu.Unlock()
		r.stop()
		start := time.Now()
		err := r.wait()
		if err == nil || !strings.Contains(err.Error(), "1 task not settled in time: task 1 (mail, attempt 1)") {
			t.Errorf("Run: %v", err)
		}
		if took := time.Since(start); took > 12*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func TestWorker_closedClient(t *testing.T) {
	t.Parallel()
	o := newOffice(wire.Task{})
	runWorker(t, o, WorkerConfig{Concurrency: 1}, func(w *Worker) {
		Handle(w, "mail", func(ctx context.Context, job *Job[mail]) error { <-ctx.Done(); return context.Cause(ctx) })
	}, func(t *testing.T, r *running) {
		r.c.Close()
		if err := r.wait(); !errors.Is(err, ErrClosed) {
			t.Errorf("Run: %v", err)
		}
		if err := r.Health(); err == nil {
			t.Error("healthy after Run")
		}
	})
}
