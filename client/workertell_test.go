package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claimq/claimq/api/wire"
)

// A refused key ends Run like the end of its context: running handlers finish.
func TestWorker_refusedKey(t *testing.T) {
	t.Parallel()
	for code, want := range map[wire.Code]error{wire.CodeUnauthorized: ErrUnauthorized, wire.CodeForbidden: ErrForbidden} {
		t.Run(string(code), func(t *testing.T) {
			t.Parallel()
			o := newOffice(wire.Task{})
			var begun atomic.Bool
			o.fault = func(r request, before bool) reply {
				if before && strings.HasSuffix(r.path, "/claim") && begun.Load() {
					return refuses(code)
				}
				return nil
			}
			runWorker(t, o, WorkerConfig{Concurrency: 2}, func(w *Worker) {
				Handle(w, "mail", func(context.Context, *Job[mail]) error {
					begun.Store(true)
					<-time.After(20 * time.Second)
					return nil
				})
			}, func(t *testing.T, r *running) {
				start := time.Now()
				err := r.wait()
				if !errors.Is(err, want) || err.Error() != fmt.Sprintf("run worker w1: the API key is refused: claim tasks: E (%s): M", code) {
					t.Errorf("Run: %v", err)
				}
				// The handler takes 20 s; for 10 s another node might know the key.
				if took := time.Since(start); took < 20*time.Second || took > 20*time.Second+keyUnknownMax {
					t.Errorf("it took %v", took)
				}
			})
			if got := o.task(1); got.Status != "completed" {
				t.Errorf("the task is %s", got.Status)
			}
		})
	}
}

type runKey struct{}

// told records what a worker reports, with a word for what is in the context.
type told struct {
	mu    sync.Mutex
	lines []string
}

func (o *told) add(ctx context.Context, line string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	trace, _ := ctx.Value(traceparentKey{}).(string)
	o.lines = append(o.lines, fmt.Sprint(line, " ", ctx.Value(runKey{}), trace))
}

// logOf is a slog.Handler that records messages.
type logOf struct {
	slog.Handler
	told *told
}

func (l logOf) Enabled(context.Context, slog.Level) bool { return true }

func (l logOf) Handle(ctx context.Context, r slog.Record) error {
	line := r.Message
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "task_id" || a.Key == "attempt" || a.Key == "task_type" {
			line += " " + a.Value.String()
		}
		return true
	})
	l.told.add(ctx, line)
	return nil
}

// OnError gets what otherwise only the log has, and both get Run's context.
func TestWorker_OnError(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fault        string // calls to this path find no leader
		handle       func(context.Context) error
		what         error // that there is
		hook, logged string
	}{
		"panic":      {handle: func(context.Context) error { panic(errors.ErrUnsupported) }, what: errors.ErrUnsupported, hook: "1 v 00-t", logged: "claimq: handler panicked 1 mail 1 v 00-t"},
		"lost claim": {fault: "/extend", handle: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, what: ErrLeaseLost, hook: "1 v 00-t", logged: "claimq: claim lost 1 mail 1 v 00-t"},
		"claims":     {fault: "/claim", what: ErrNoLeader, hook: "none v", logged: "claimq: claim failed v"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(wire.Task{Traceparent: " 00-t", MaxAttempts: 1})
			o.fault = func(r request, before bool) reply {
				if before && test.fault != "" && strings.HasSuffix(r.path, test.fault) {
					return refuses(wire.CodeNoLeader)
				}
				return nil
			}
			var hook, log told
			cfg := WorkerConfig{Logger: slog.New(logOf{told: &log}), OnError: func(ctx context.Context, task *Task, err error) {
				line := "none"
				if task != nil {
					line = task.ID
				}
				if !errors.Is(err, test.what) {
					line += err.Error()
				}
				if of := (*TaskError)(nil); errors.As(err, &of) != (task != nil) || task != nil && (of.TaskID != "1" || of.TaskType != "mail" || of.Attempt != 1) {
					line += fmt.Sprintf("of %+v", of)
				}
				hook.add(ctx, line)
			}}
			runWorkerIn(t, context.WithValue(context.Background(), runKey{}, "v"), o, cfg, func(w *Worker) {
				Handle(w, "mail", func(ctx context.Context, _ *Job[mail]) error { return test.handle(ctx) })
			}, func(t *testing.T, r *running) { <-time.After(50 * time.Second) })
			if len(hook.lines) == 0 || hook.lines[0] != test.hook {
				t.Errorf("OnError: %q", hook.lines)
			}
			if len(log.lines) < 2 || log.lines[0] != "claimq: worker has begun v" || log.lines[1] != test.logged {
				t.Errorf("logged: %q", log.lines)
			}
		})
	}
}

// An error of a method of Claim names its attempt exactly once.
func TestTaskError(t *testing.T) {
	t.Parallel()
	o := newOffice(wire.Task{})
	o.fault = func(r request, before bool) reply {
		if before && r.path != "/api/tasks/claim" {
			return refuses(wire.CodeStaleClaim)
		}
		return nil
	}
	c := o.client(t)
	defer c.Close()
	cl, err := c.ClaimNext(t.Context(), ClaimRequest{WorkerID: "w1", Types: []string{"mail"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	_, extended := cl.Extend(ctx, 0, nil)
	_, next := cl.CompleteAndClaim(ctx, nil, ClaimRequest{})
	_, negative := cl.Extend(ctx, -1, nil)
	for want, err := range map[string]error{
		"complete task 1 (mail, attempt 1): E (stale_claim): M":                     cl.Complete(ctx, nil),
		"complete task 1 (mail, attempt 1): E (stale_claim): M ":                    next,
		"fail task 1 (mail, attempt 1): E (stale_claim): M":                         cl.Fail(ctx, errors.New("no")),
		"release task 1 (mail, attempt 1): E (stale_claim): M":                      cl.Release(ctx, 0),
		"extend task 1 (mail, attempt 1): E (stale_claim): M":                       extended,
		"extend task 1 (mail, attempt 1): lease is -1ns, it must not be negative":   negative,
		"task 1 (mail, attempt 1): lease lost":                                      cl.wrap("", ErrLeaseLost),
		"report progress: extend task 1 (mail, attempt 1): E (stale_claim): M":      cl.wrap("", fmt.Errorf("report progress: %w", extended)),
		"a task 1 (mail, attempt 1): complete task 2 (mail, attempt 1): lease lost": cl.wrap("a", &TaskError{"complete", "2", "mail", 1, ErrLeaseLost}),
	} {
		if err == nil || err.Error() != strings.TrimSpace(want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// Lines of Job.Log name their task at every level.
func TestJob_Log(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	logger := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	o := newOffice(wire.Task{})
	runWorker(t, o, WorkerConfig{Logger: logger}, func(w *Worker) {
		Handle(w, "mail", func(_ context.Context, job *Job[mail]) error {
			job.Log().Info("sent", "to", job.Params.To, "task", job.Task)
			return nil
		})
	}, func(*testing.T, *running) {})
	want := "level=INFO msg=sent worker_id=w1 task_id=1 task_type=mail attempt=1 claim_token=1 to=ada task.task_id=1 task.task_type=mail task.attempt=1\n"
	if !strings.Contains(out.String(), want) {
		t.Errorf("%s, want %s", out.String(), want)
	}
	// Without a Logger the worker's own lines go to slog.Default at Warn and above; the handler's at every level.
	runWorker(t, newOffice(wire.Task{}), WorkerConfig{}, func(w *Worker) {
		Handle(w, "mail", func(ctx context.Context, job *Job[mail]) error {
			if !job.Log().Enabled(ctx, slog.LevelInfo) {
				t.Error("what a handler says at Info is dropped")
			}
			return nil
		})
	}, func(*testing.T, *running) {})
}

// Run waits for a call of OnError about a handler that goes on after its timeout.
func TestWorker_OnError_isWaitedFor(t *testing.T) {
	t.Parallel()
	for name, takes := range map[string]time.Duration{"the handler returns": 3 * time.Second, "it is left behind": time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := WorkerConfig{Timeout: time.Second, StopWait: time.Second}
			cfg.OnError = func(_ context.Context, _ *Task, err error) {
				if errors.Is(err, context.DeadlineExceeded) {
					<-time.After(time.Minute)
				}
			}
			runWorker(t, newOffice(wire.Task{}), cfg, func(w *Worker) {
				Handle(w, "mail", func(context.Context, *Job[mail]) error {
					<-time.After(takes)
					return nil
				})
			}, func(t *testing.T, r *running) {
				begun := time.Now()
				<-time.After(2500 * time.Millisecond)
				r.stop()
				if err := r.wait(); (err != nil) != (takes == time.Minute) {
					t.Errorf("Run: %v", err)
				}
				if took := time.Since(begun); took != 62*time.Second {
					t.Errorf("Run has returned after %v", took)
				}
			})
		})
	}
}
