package client

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/claimq/claimq/api/wire"
)

// A process that was paused for longer than its lease must find its context ended at once, although no timer has
// fired and no goroutine has run yet. The test moves the lease's end instead of pausing.
func TestClaim_KeepAlive_afterAStop(t *testing.T) {
	t.Parallel()
	stop := func(cl *Claim) {
		cl.mu.Lock()
		defer cl.mu.Unlock()
		cl.endsAt = cl.endsAt.Add(-time.Hour)
	}
	for name, ended := range map[string]func(ctx context.Context) bool{
		"Err":   func(ctx context.Context) bool { return ctx.Err() != nil },
		"Cause": func(ctx context.Context) bool { return context.Cause(ctx) != nil },
		"Done": func(ctx context.Context) bool {
			select {
			case <-ctx.Done():
				return true
			default:
				return false
			}
		},
		"Err of one with a value": func(ctx context.Context) bool {
			return context.WithValue(ctx, traceparentKey{}, "").Err() != nil
		},
		"Err of one that is made then": func(ctx context.Context) bool {
			ctx, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			return ctx.Err() != nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cl := heldClaim()
			ctx, end := cl.KeepAlive(t.Context())
			defer end()
			if ended(ctx) {
				t.Fatalf("it has ended at the beginning: %v", context.Cause(ctx))
			}
			stop(cl)
			if !ended(ctx) {
				t.Error("the lease has ended, and the context has not")
			}
			if !errors.Is(context.Cause(ctx), ErrLeaseLost) {
				t.Errorf("the cause is %v", context.Cause(ctx))
			}
		})
	}
	t.Run("one that was made before", func(t *testing.T) {
		t.Parallel()
		cl := heldClaim()
		ctx, end := cl.KeepAlive(t.Context())
		defer end()
		derived, cancel := context.WithTimeout(context.WithValue(ctx, traceparentKey{}, ""), time.Hour)
		defer cancel()
		stop(cl)
		if ctx.Err() == nil {
			t.Fatal("the lease has ended, and the context has not")
		}
		// At once: a goroutine that waits for it would be late here.
		if derived.Err() == nil || !errors.Is(context.Cause(derived), ErrLeaseLost) {
			t.Errorf("what is derived of it goes on: %v, %v", derived.Err(), context.Cause(derived))
		}
	})
	t.Run("being settled", func(t *testing.T) {
		t.Parallel()
		cl := heldClaim()
		ctx, end := cl.KeepAlive(t.Context())
		defer end()
		cl.beginSettling()
		stop(cl)
		if err := ctx.Err(); err != nil {
			t.Errorf("the settling call is cut off: %v", err)
		}
		cl.settledHere()
		cl.endSettling()
		if err := ctx.Err(); err != nil {
			t.Errorf("it was settled in time: %v", err)
		}
	})
}

// heldClaim returns a claim of a minute whose server does not exist.
func heldClaim() *Claim {
	c, err := New(Config{Endpoints: []string{"http://127.0.0.1:1"}})
	if err != nil {
		panic(err)
	}
	return &Claim{
		c: c, taskID: 1, workerID: "w1", Token: 1, Task: &Task{ID: "1"}, over: make(chan struct{}),
		lease: time.Minute, endsAt: time.Now().Add(time.Minute),
	}
}

// The same for the handlers of a worker, with and without a timeout. The result of such a handler is never sent.
func TestWorker_afterAStop(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]HandlerOption{"plain": nil, "timeout": {WithTimeout(time.Hour)}, "told to stop before": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(wire.Task{})
			runWorker(t, o, WorkerConfig{Concurrency: 1}, func(w *Worker) {
				handle := func(ctx context.Context, job *Job[mail]) error {
					if job.Attempt > 1 {
						return nil
					}
					if name == "told to stop before" {
						job.a.cancel(ErrCancelRequested)
					}
					cl := job.a.cl
					cl.mu.Lock()
					cl.endsAt = cl.endsAt.Add(-time.Hour)
					cl.mu.Unlock()
					if ctx.Err() == nil {
						t.Error("the lease has ended, and the context has not")
					}
					if err := job.Progress(context.WithoutCancel(ctx), 1); !errors.Is(err, ErrLeaseLost) {
						t.Errorf("progress of a claim that is lost: %v", err)
					}
					cl.mu.Lock()
					cl.endsAt = cl.endsAt.Add(2 * time.Hour) // the answer to an extend
					cl.mu.Unlock()
					return errors.New("to nobody")
				}
				Handle(w, "mail", handle, opts...)
			}, func(t *testing.T, r *running) {
				<-time.After(2 * time.Minute)
				if s := r.Stats(); s.Lost != 1 || s.Failed != 0 || s.Completed != 1 {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}
