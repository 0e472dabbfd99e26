package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claimq/claimq/api/wire"
)

// leased is the answer to a claim with ms left of its lease.
func leased(ms int64, extra string) string {
	return fmt.Sprintf(`{"success":true,"task":{"id":17,"claim_token":5,"worker_id":"w1","lease_remaining_ms":%d}%s}`, ms, extra)
}

// slowly answers after d of the bubble's time.
func slowly(d time.Duration, r reply) reply {
	return func(w http.ResponseWriter, req *http.Request) {
		<-time.After(d)
		r(w, req)
	}
}

func TestClaim_deadlineCountsFromBeforeTheRequest(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		lease   time.Duration
		replies []reply
		want    time.Duration // from the start, at most
	}{
		"a slow answer": {
			lease:   10 * time.Second,
			replies: []reply{slowly(3*time.Second, says(200, leased(10_000, "")))},
			want:    10 * time.Second,
		},
		"the server's default": {
			replies: []reply{slowly(3*time.Second, says(200, leased(30_000, "")))},
			want:    30 * time.Second,
		},
		"begun by an earlier try whose answer was lost": {
			lease: 10 * time.Second,
			replies: []reply{
				slowly(2*time.Second, says(502, "")),
				says(200, leased(10_000, `,"repeated":true`)), // a server that counts wrongly
			},
			want: 10 * time.Second,
		},
		"recovered with little left": {
			lease:   10 * time.Second,
			replies: []reply{says(200, leased(4_000, `,"repeated":true`))},
			want:    4 * time.Second,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				_, c := talkInMemory(t, test.replies...)
				defer c.Close()
				start := time.Now()
				cl, err := c.ClaimNext(t.Context(), ClaimRequest{WorkerID: "w1", Lease: test.lease})
				if err != nil {
					t.Fatal(err)
				}
				got := cl.Deadline.Sub(start)
				if got > test.want-test.want/1000 || got < test.want-test.want/500 {
					t.Errorf("the deadline is %v after the start, want a little less than %v", got, test.want)
				}
				if !cl.LeaseEndsAt().Equal(cl.Deadline) {
					t.Errorf("the lease ends at %v, the deadline is %v", cl.LeaseEndsAt(), cl.Deadline)
				}
			})
		})
	}
}

func TestClaimNext_asksAnewWhenWhatItClaimedIsOver(t *testing.T) {
	t.Parallel()
	over := `{"success":true,"repeated":true,"task":{"id":17,"claim_token":5,"claim_state":"ended"}}`
	s, c := talk(t, breaks, says(200, over), says(200, leased(1000, "")))
	cl, err := c.ClaimNext(t.Context(), ClaimRequest{WorkerID: "w1"})
	if err != nil || cl.Repeated {
		t.Fatalf("got %+v, %v", cl, err)
	}
	got := s.requests()
	if a, b := got[1].field(t, "claim_request_id"), got[2].field(t, "claim_request_id"); a == b {
		t.Error("the request id is the same")
	}
	_, c = talk(t, says(200, over))
	if _, err := c.ClaimNext(t.Context(), ClaimRequest{WorkerID: "w1", RequestID: "mine"}); !errors.Is(err, ErrStaleClaim) {
		t.Errorf("with a request id of the caller's: got %v", err)
	}
}

func TestClaimMany(t *testing.T) {
	t.Parallel()
	s, c := talk(t,
		says(200, `{"success":true,"tasks":[{"id":1,"claim_token":3,"lease_remaining_ms":1000},{"id":2,"claim_token":4,"lease_remaining_ms":1000}]}`),
		says(200, `{"success":true,"tasks":[]}`))
	req := ClaimRequest{WorkerID: "w1", Types: []string{"a", "b"}, SortBy: "created_at", SortOrder: "desc", Lease: 1500 * time.Microsecond, RequestID: "r"}
	claims, err := c.ClaimMany(t.Context(), req, 5)
	if err != nil || len(claims) != 2 || claims[0].Task.ID != "1" || claims[1].Token != 4 {
		t.Fatalf("got %v, %v", claims, err)
	}
	want := `{"worker_id":"w1","task_types":["a","b"],"sort_by":"created_at","sort_order":"desc","limit":5,"lease_ms":2,"claim_request_id":"r"}`
	if got := s.requests()[0]; got.body != want || got.path != "/api/tasks/claim" {
		t.Errorf("sent %s %s\nwant %s", got.path, got.body, want)
	}
	claims, err = c.ClaimMany(t.Context(), req, 5)
	if err != nil || len(claims) != 0 {
		t.Errorf("of none: got %v, %v", claims, err)
	}
	for _, limit := range []int{-1, 0, 1001} {
		if _, err := c.ClaimMany(t.Context(), req, limit); err == nil || !strings.Contains(err.Error(), "must be 1 to 1000") {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
}

func TestClaimNext_refusals(t *testing.T) {
	t.Parallel()
	s, c := talk(t, refuses(wire.CodeNoPendingTasks))
	if _, err := c.ClaimNext(t.Context(), ClaimRequest{WorkerID: "w1"}); !errors.Is(err, ErrNoTasks) {
		t.Errorf("nothing to claim: %v", err)
	}
	if got := s.requests()[0].body; strings.Contains(got, "limit") {
		t.Errorf("a limit was sent: %s", got)
	}
	if _, err := c.ClaimNext(t.Context(), ClaimRequest{}); !errors.Is(err, ErrInvalidWorkerID) {
		t.Errorf("without a worker: %v", err)
	}
}

func TestClaim_Complete_keepsTheResultsBytes(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ result, want string }{
		"JSON":    {`{ "a": "<b>" }`, `{"worker_id":"w1","claim_token":5,"result":{ "a": "<b>" }}`},
		"bytes":   {"\xff\x00", `{"worker_id":"w1","claim_token":5,"result_payload":"/wA="}`},
		"nothing": {"", `{"worker_id":"w1","claim_token":5}`},
		"null":    {"null", `{"worker_id":"w1","claim_token":5,"result_payload":"bnVsbA=="}`},
	}
	for name, test := range tests {
		s, cl := claimFor(t, says(200, okAnswer))
		if err := cl.Complete(t.Context(), []byte(test.result)); err != nil {
			t.Fatal(err)
		}
		if got := s.requests()[1].body; got != test.want {
			t.Errorf("%s: sent %s\nwant %s", name, got, test.want)
		}
	}
}

func TestClaim_Fail_boundsTheText(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		cause error
		want  string
	}{
		"text":       {errors.New("disk full"), "disk full"},
		"nil":        {nil, "no reason given"},
		"not UTF-8":  {errors.New("a\xffb"), "a\uFFFDb"},
		"zero byte":  {errors.New("a\x00b"), "a\uFFFDb"},
		"a long one": {errors.New("x" + strings.Repeat("é", errorBytesMax)), "x" + strings.Repeat("é", errorBytesMax/2-1)},
	}
	for name, test := range tests {
		s, cl := claimFor(t, says(200, okAnswer))
		if err := cl.Fail(t.Context(), test.cause); err != nil {
			t.Fatal(err)
		}
		if got := s.requests()[1].field(t, "error"); got != test.want {
			t.Errorf("%s: sent %.40q (%d bytes)", name, got, len(got.(string)))
		}
	}
}

// extended is the answer to an extend.
func extended(ms int64) string {
	return fmt.Sprintf(`{"success":true,"lease_remaining_ms":%d,"cancel_requested":false}`, ms)
}

func TestClaim_KeepAlive_extendsAtAThird(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, c := talkInMemory(t, says(200, leased(9_000, "")), says(200, extended(9_000)))
		defer c.Close()
		cl, err := c.ClaimNext(t.Context(), ClaimRequest{WorkerID: "w1"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := cl.KeepAlive(t.Context())
		<-time.After(29 * time.Second)
		synctest.Wait()
		if ctx.Err() != nil {
			t.Fatalf("the context has ended: %v", context.Cause(ctx))
		}
		if n := len(s.requests()) - 1; n != 9 {
			t.Errorf("%d extends in 29 s of a lease of 9 s, want 9", n)
		}
		if left := time.Until(cl.LeaseEndsAt()); left < 6*time.Second {
			t.Errorf("the lease has %v left", left)
		}
		if got := s.requests()[1]; got.path != "/api/tasks/17/extend" || got.body != `{"worker_id":"w1","claim_token":5}` {
			t.Errorf("sent %s %s", got.path, got.body)
		}
		stop()
		synctest.Wait()
		n := len(s.requests())
		<-time.After(time.Minute)
		if len(s.requests()) != n {
			t.Error("it goes on after it was stopped")
		}
	})
}

func TestClaim_KeepAlive_endsBeforeTheLeaseDoes(t *testing.T) {
	t.Parallel()
	replies := map[string]reply{
		"no leader":   refuses(wire.CodeNoLeader),
		"unknown":     says(502, ""),
		"a stuck one": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	}
	for name, r := range replies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				_, c := talkInMemory(t, says(200, leased(9_000, "")), r)
				defer c.Close()
				start := time.Now()
				cl, err := c.ClaimNext(t.Context(), ClaimRequest{WorkerID: "w1"})
				if err != nil {
					t.Fatal(err)
				}
				ctx, stop := cl.KeepAlive(t.Context())
				defer stop()
				<-ctx.Done()
				if !errors.Is(context.Cause(ctx), ErrLeaseLost) {
					t.Errorf("the cause is %v", context.Cause(ctx))
				}
				if d := time.Since(start); d >= 9*time.Second || d < 7*time.Second {
					t.Errorf("it ended after %v of a lease of 9 s", d)
				}
			})
		})
	}
}

func TestClaim_KeepAlive_endsWhenTheClaimIsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, c := talkInMemory(t, says(200, leased(9_000, "")), refuses(wire.CodeStaleClaim))
		defer c.Close()
		cl, err := c.ClaimNext(t.Context(), ClaimRequest{WorkerID: "w1"})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		ctx, stop := cl.KeepAlive(t.Context())
		defer stop()
		<-ctx.Done()
		if cause := context.Cause(ctx); !errors.Is(cause, ErrLeaseLost) || !errors.Is(cause, ErrStaleClaim) {
			t.Errorf("the cause is %v", cause)
		}
		if d := time.Since(start); d > 3*time.Second {
			t.Errorf("it took %v", d)
		}
	})
}

func TestClaim_KeepAlive_endsWithTheClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, c := talkInMemory(t, says(200, leased(9_000, "")))
		cl, err := c.ClaimNext(t.Context(), ClaimRequest{WorkerID: "w1"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := cl.KeepAlive(t.Context())
		defer stop()
		c.Close() // waits for the goroutine
		if !errors.Is(context.Cause(ctx), ErrClosed) {
			t.Errorf("the cause is %v", context.Cause(ctx))
		}
		late, stopLate := cl.KeepAlive(t.Context())
		defer stopLate()
		if !errors.Is(context.Cause(late), ErrClosed) {
			t.Errorf("after Close the cause is %v", context.Cause(late))
		}
	})
}

// An extend during our own complete is refused, which must not end the context that the complete may be using.
func TestClaim_KeepAlive_letsTheSettlingCallSpeak(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		complete reply
		lost     bool
	}{
		"which succeeds":   {says(200, okAnswer), false},
		"which is refused": {refuses(wire.CodeStaleClaim), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := func(w http.ResponseWriter, r *http.Request) {
					switch r.URL.Path {
					case "/api/tasks/claim":
						says(200, leased(9_000, ""))(w, r)
					case "/api/tasks/17/complete":
						slowly(4*time.Second, test.complete)(w, r)
					default:
						refuses(wire.CodeTaskCompleted)(w, r)
					}
				}
				_, c := talkInMemory(t, server)
				defer c.Close()
				cl, err := c.ClaimNext(t.Context(), ClaimRequest{WorkerID: "w1"})
				if err != nil {
					t.Fatal(err)
				}
				ctx, stop := cl.KeepAlive(t.Context())
				defer stop()
				if err := cl.Complete(ctx, nil); (err != nil) != test.lost {
					t.Errorf("complete: %v", err)
				}
				synctest.Wait()
				if lost := errors.Is(context.Cause(ctx), ErrLeaseLost); lost != test.lost {
					t.Errorf("the cause is %v", context.Cause(ctx))
				}
			})
		})
	}
}

// A cancel request ends the work, not the claim, which is still extended so that it can be settled.
func TestClaim_KeepAlive_endsTheWorkWhenCancellingIsAskedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, c := talkInMemory(t, says(200, leased(9_000, "")), says(200, extended(9_000)),
			says(200, `{"success":true,"lease_remaining_ms":9000,"cancel_requested":true}`))
		defer c.Close()
		cl, err := c.ClaimNext(t.Context(), ClaimRequest{WorkerID: "w1"})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		ctx, stop := cl.KeepAlive(t.Context())
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), ErrCancelRequested) || errors.Is(context.Cause(ctx), ErrLeaseLost) {
			t.Errorf("the cause is %v", context.Cause(ctx))
		}
		if d := time.Since(start); d < 5*time.Second || d > 7*time.Second {
			t.Errorf("it ended after %v, at the second extend", d)
		}
		<-time.After(30 * time.Second)
		if left := time.Until(cl.LeaseEndsAt()); left < 5*time.Second {
			t.Errorf("the lease is not extended any more: %v left", left)
		}
		stop()
		synctest.Wait()
		n := len(s.requests())
		<-time.After(time.Minute)
		if len(s.requests()) != n {
			t.Error("it goes on after it was stopped")
		}
	})
}
