package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claimq/claimq/api/wire"
)

// notOurs are answers that say nothing about the call: from a proxy, a node that does not know the key yet, or one
// that failed.
func notOurs() map[string]reply {
	all := map[string]reply{}
	for _, status := range []int{302, 400, 401, 403, 404, 408, 409, 410, 413, 429, 500, 503} {
		all[fmt.Sprint(status)] = says(status, "<html>")
		all[fmt.Sprint(status, " for a minute")] = withRetryAfter("60", says(status, "<html>"))
		all[fmt.Sprint(status, " with a code")] = says(status, `{"code":"E17","error":"blocked"}`)
	}
	for _, code := range []wire.Code{wire.CodeUnauthorized, wire.CodeInternal, wire.CodeOverloaded, wire.CodeRateLimited} {
		all[string(code)] = withRetryAfter("60", refuses(code))
	}
	return all
}

// once makes the office answer the first call of a path with r.
func once(o *office, path string, r reply) {
	done := false
	o.fault = func(got request, before bool) reply {
		if !before || done || !strings.HasSuffix(got.path, path) {
			return nil
		}
		done = true
		return r
	}
}

// One answer of a proxy never ends a claim, an extend or a settling call, however long it asks to wait.
func TestWorker_answersThatAreNotOurs(t *testing.T) {
	t.Parallel()
	for name, r := range notOurs() {
		for _, path := range []string{"/claim", "/extend", "/complete", "/fail", "/release"} {
			t.Run(name+path, func(t *testing.T) {
				t.Parallel()
				o := newOffice(wire.Task{MaxAttempts: 5})
				once(o, path, r)
				runs := 0
				runWorker(t, o, WorkerConfig{Lease: 9 * time.Second}, func(w *Worker) {
					Handle(w, "mail", func(ctx context.Context, job *Job[mail]) error {
						runs++
						select {
						case <-ctx.Done():
							t.Errorf("the handler is stopped: %v", context.Cause(ctx))
							return ctx.Err()
						case <-time.After(8 * time.Second):
						}
						switch path {
						case "/fail":
							return Permanent(errors.New("boom"))
						case "/release":
							return Snooze(time.Hour)
						}
						return nil
					})
				}, func(*testing.T, *running) { <-time.After(time.Minute) })
				want := map[string]string{"/fail": "failed", "/release": "released"}[path]
				if want == "" {
					want = "completed"
				}
				if got := o.task(1); got.Status != want || runs != 1 || path == "/fail" && got.Error != "boom" {
					t.Errorf("the task is %s after %d runs: %s", got.Status, runs, got.Error)
				}
			})
		}
	}
}

// Only an answer about the claim itself loses it; otherwise the extend is repeated until the lease ends.
func TestClaim_KeepAlive_untilTheLeaseEnds(t *testing.T) {
	t.Parallel()
	for name, r := range notOurs() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, c := talkInMemory(t, says(200, leased(9_000, "")), r)
				defer c.Close()
				cl, err := c.ClaimNext(t.Context(), ClaimRequest{WorkerID: "w1", Lease: 9 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				begun := time.Now()
				ctx, stop := cl.KeepAlive(t.Context())
				defer stop()
				<-ctx.Done()
				if took := time.Since(begun); took < 8*time.Second || took > 9*time.Second || !errors.Is(context.Cause(ctx), ErrLeaseLost) {
					t.Errorf("after %v: %v", took, context.Cause(ctx))
				}
				if n := len(s.requests()) - 1; n < 3 || n > 60 {
					t.Errorf("%d extends in 6 s", n)
				}
			})
		})
	}
	for _, code := range []wire.Code{wire.CodeStaleClaim, wire.CodeWrongWorker, wire.CodeTaskNotFound, wire.CodeTaskCancelled} {
		s, cl := claimFor(t, refuses(code))
		cl.endsAt = time.Now().Add(-time.Hour).Add(cl.lease) // an extend is due
		cl.lease *= 1000
		ctx, stop := cl.KeepAlive(t.Context())
		<-ctx.Done()
		stop()
		if n := len(s.requests()); n > 2 {
			t.Errorf("%s: %d requests", code, n)
		}
	}
}

// A wait that an answer asks for applies to that endpoint, and is cut to what is left of the call.
func TestCall_waitsThatDoNotFit(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]reply{
		"a proxy": withRetryAfter("60", says(503, "")), "a node": withRetryAfter("60", refuses(wire.CodeShuttingDown)),
		"a limit of a proxy": withRetryAfter("60", says(429, "")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &script{replies: []reply{r, says(201, pendingTask)}}
				c, err := newClient(Config{Endpoints: []string{"http://a", "http://b"}}, memoryTransport{s}, memoryTransport{s})
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				start := time.Now()
				submit(t, c)
				if took := time.Since(start); took > time.Second {
					t.Errorf("with another endpoint it took %v", took)
				}
			})
			synctest.Test(t, func(t *testing.T) {
				_, c := talkInMemory(t, r, says(201, pendingTask))
				defer c.Close()
				start := time.Now()
				submit(t, c)
				if took := time.Since(start); took < callTimeout/5 || took > callTimeout {
					t.Errorf("with one endpoint it took %v of %v", took, callTimeout)
				}
			})
		})
	}
}

// A proxy that always refuses the settling call but passes extends must not hold the slot for ever: the attempt fails
// and says why.
func TestWorker_neverAnsweredSettle(t *testing.T) {
	t.Parallel()
	o := newOffice(wire.Task{MaxAttempts: 5})
	o.fault = func(got request, before bool) reply {
		if before && strings.HasSuffix(got.path, "/complete") {
			return says(413, "<html>")
		}
		return nil
	}
	runWorker(t, o, WorkerConfig{Lease: 9 * time.Second}, func(w *Worker) {
		Handle(w, "mail", func(context.Context, *Job[mail]) error { return nil })
	}, func(*testing.T, *running) { <-time.After(settleMax + 20*time.Second) })
	if got := o.task(1); got.Attempts == 0 || !strings.Contains(got.Error, "HTTP status 413") || got.permanent {
		t.Errorf("the task is %s, permanent %v: %s", got.Status, got.permanent, got.Error)
	}
}
