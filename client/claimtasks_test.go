package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/internal/repeat"
)

// waits answers like the server to a waiting claim: with r, or empty if the wait ends earlier than after from start.
func waits(start time.Time, after time.Duration, r reply) reply {
	return func(w http.ResponseWriter, req *http.Request) {
		var body wire.Claim
		if err := json.Unmarshal([]byte(req.Context().Value(bodyKey{}).(string)), &body); err != nil {
			panic(err)
		}
		until := time.Now().Add(time.Duration(body.WaitMS) * time.Millisecond)
		if due := start.Add(after); !due.After(until) {
			<-time.After(time.Until(due))
			r(w, req)
			return
		}
		<-time.After(time.Until(until))
		refuses(wire.CodeNoPendingTasks)(w, req)
	}
}

// Each request waits at most 6 s, and less for a short lease, because the lease is counted from before the request.
func TestClaimNext_waitsInRequests(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		lease, wait, due time.Duration
		waits            []float64 // ms that each request asks for
	}{
		{time.Hour, time.Minute, 10 * time.Second, []float64{6_000, 6_000}},
		{time.Hour, 3 * time.Second, 2 * time.Second, []float64{3000}},
		{0, time.Minute, 8 * time.Second, []float64{6_000, 6_000}},
		{4 * time.Second, time.Minute, 5 * time.Second, []float64{2000, 2000, 2000}},
	} {
		synctest.Test(t, func(t *testing.T) {
			lease := test.lease
			if lease == 0 {
				lease = 30 * time.Second
			}
			s, c := talkInMemory(t, waits(time.Now(), test.due, says(200, leased(lease.Milliseconds(), ""))))
			defer c.Close()
			start := time.Now()
			cl, err := c.ClaimNext(t.Context(), ClaimRequest{WorkerID: "w1", Lease: test.lease, Wait: test.wait})
			if err != nil {
				t.Fatal(err)
			}
			if d := time.Since(start); d != test.due {
				t.Errorf("it took %v, the task came after %v", d, test.due)
			}
			ids := map[any]bool{}
			got := s.requests()
			for i, r := range got {
				ids[r.field(t, "claim_request_id")] = true
				if i < len(test.waits) && r.field(t, "wait_ms") != test.waits[i] {
					t.Errorf("request %d waits %v ms, want %v", i, r.field(t, "wait_ms"), test.waits[i])
				}
			}
			if len(got) != len(test.waits) || len(ids) != len(got) {
				t.Errorf("%d requests with %d request ids, want %d", len(got), len(ids), len(test.waits))
			}
			sent := start.Add(time.Duration(test.waits[0]) * time.Millisecond * time.Duration(len(got)-1))
			if end := cl.Deadline; end.After(sent.Add(lease)) || end.Before(sent.Add(lease-lease/500)) {
				t.Errorf("the deadline is %v after the last request was sent, of a lease of %v", end.Sub(sent), lease)
			}
			if left := time.Until(cl.Deadline); left < lease/3 {
				t.Errorf("of a lease of %v %v are left", lease, left)
			}
		})
	}
}

func TestClaimNext_endsAfterItsWait(t *testing.T) {
	t.Parallel()
	t.Run("of itself", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, c := talkInMemory(t, waits(time.Now(), time.Hour, breaks))
			defer c.Close()
			start := time.Now()
			_, err := c.ClaimNext(t.Context(), ClaimRequest{WorkerID: "w1", Wait: time.Minute})
			if !errors.Is(err, ErrNoTasks) || errors.Is(err, ErrOutcomeUnknown) {
				t.Errorf("got %v", err)
			}
			if d := time.Since(start); d != time.Minute {
				t.Errorf("it took %v", d)
			}
		})
	})
	t.Run("of several", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, c := talkInMemory(t, slowly(3*time.Second, says(200, `{"success":true,"tasks":[]}`)))
			defer c.Close()
			claims, err := c.ClaimMany(t.Context(), ClaimRequest{WorkerID: "w1", Wait: 3 * time.Second}, 1)
			if err != nil || len(claims) != 0 || len(s.requests()) != 1 {
				t.Errorf("got %v, %v after %d requests", claims, err, len(s.requests()))
			}
		})
	})
	// The last request is answered before ctx ends, so that no outcome is unknown.
	t.Run("before the deadline of ctx", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, c := talkInMemory(t, waits(time.Now(), time.Hour, breaks))
			defer c.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
			defer cancel()
			_, err := c.ClaimNext(ctx, ClaimRequest{WorkerID: "w1", Wait: 1 << 62})
			if !errors.Is(err, ErrNoTasks) || errors.Is(err, ErrOutcomeUnknown) || ctx.Err() != nil {
				t.Errorf("got %v, ctx: %v", err, ctx.Err())
			}
		})
	})
	// The same if no further answer comes.
	t.Run("with ctx", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			o := newOffice()
			o.fault = func(request, bool) reply {
				return func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
			}
			c := o.client(t)
			defer c.Close()
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			start := time.Now()
			_, err := c.ClaimNext(ctx, ClaimRequest{WorkerID: "w1", Wait: time.Minute})
			if !errors.Is(err, context.Canceled) || !errors.Is(err, ErrOutcomeUnknown) {
				t.Errorf("got %v", err)
			}
			if d := time.Since(start); d > time.Second+endedClaimMax {
				t.Errorf("it took %v", d)
			}
		})
	})
}

// If the request that was to end the wait is not answered, the outcome is unknown even though the waiting request
// took nothing.
func TestClaimNext_unknownEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice()
		o.fault = func(r request, before bool) reply {
			if before && !strings.Contains(r.body, "wait_ms") {
				return func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
			}
			return nil
		}
		c := o.client(t)
		defer c.Close()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(2900*time.Millisecond, cancel)
		_, err := c.ClaimNext(ctx, ClaimRequest{WorkerID: "w1", Wait: 3 * time.Second})
		if !errors.Is(err, context.Canceled) || !errors.Is(err, ErrOutcomeUnknown) {
			t.Errorf("got %v", err)
		}
	})
}

// A task that the claim still gets after ctx has ended is released, whether the claim reaches the leader before or
// after there are tasks.
func TestClaimMany_releasesWhatNobodyWaitsFor(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]time.Duration{"before the tasks": 1100 * time.Millisecond, "after the tasks": 1500 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOffice()
				var claims atomic.Int64
				o.fault = func(r request, before bool) reply {
					if before && strings.HasSuffix(r.path, "/claim") && claims.Add(1) == 1 {
						<-time.After(late)
					}
					return nil
				}
				c := o.client(t)
				defer c.Close()
				ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(time.Second))
				if name == "after the tasks" {
					cancel()
					ctx, cancel = context.WithCancel(t.Context())
					time.AfterFunc(time.Second, cancel)
				}
				defer cancel()
				time.AfterFunc(1300*time.Millisecond, func() {
					o.add(wire.Task{})
					o.add(wire.Task{})
				})
				got, err := c.ClaimMany(ctx, ClaimRequest{WorkerID: "w1", Types: []string{"mail"}, Wait: time.Minute}, 2)
				if len(got) != 0 || !errors.Is(err, ctx.Err()) || errors.Is(err, ErrOutcomeUnknown) {
					t.Errorf("got %v, %v", got, err)
				}
				o.underWay.Wait()
				<-time.After(time.Second) // by now the tasks are there
				for id := range 2 {
					if task := o.task(id + 1); task.Status == "claimed" || task.Attempts != 0 {
						t.Errorf("task %d is %s: %v", id+1, task.Status, task.log)
					}
				}
			})
		})
	}
}

// A lost request may have claimed something, so that only an empty answer lets the next request use a new id.
func TestClaimNext_keepsTheIDOfALostRequest(t *testing.T) {
	t.Parallel()
	for name, lost := range losses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := talk(t, refuses(wire.CodeNoPendingTasks), lost, refuses(wire.CodeNoLeader), lost, says(200, claimedTask))
			cl, err := c.ClaimNext(t.Context(), ClaimRequest{WorkerID: "w1", Wait: time.Minute})
			if err != nil || cl.Token != 5 {
				t.Fatalf("got %+v, %v", cl, err)
			}
			got := s.requests()
			if len(got) != 5 {
				t.Fatalf("got %d requests, want 5", len(got))
			}
			id := func(i int) any { return got[i].field(t, "claim_request_id") }
			if id(0) == id(1) || id(1) != id(2) || id(2) != id(3) || id(3) != id(4) {
				t.Errorf("the request ids are %v, %v, %v, %v, %v", id(0), id(1), id(2), id(3), id(4))
			}
		})
	}
}

// The repeats of a request wait only for the remaining time.
func TestClaimNext_repeatsWithWhatIsLeftToWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, c := talkInMemory(t, slowly(7*time.Second, says(502, "")), waits(time.Now(), time.Hour, breaks))
		defer c.Close()
		start := time.Now()
		if _, err := c.ClaimNext(t.Context(), ClaimRequest{WorkerID: "w1", Wait: 10 * time.Second}); !errors.Is(err, ErrNoTasks) {
			t.Errorf("got %v", err)
		}
		if d := time.Since(start); d > 10*time.Second+time.Millisecond {
			t.Errorf("it took %v", d)
		}
		if got := s.requests()[1].field(t, "wait_ms").(float64); got > 3000 || got < 2900 {
			t.Errorf("the repeat waits %v ms", got)
		}
	})
}

// If the task's lease is shorter than the request waited, the claim is extended before the work begins, or dropped if
// it is over.
func TestClaimNext_extendsWhatIsNearlyOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		s, c := talkInMemory(t,
			waits(begun, 5*time.Second, says(200, leased(4000, ""))), refuses(wire.CodeStaleClaim),
			waits(begun, 10*time.Second, says(200, leased(4000, ""))), says(200, extended(4000)))
		defer c.Close()
		cl, err := c.ClaimNext(t.Context(), ClaimRequest{WorkerID: "w1", Wait: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if left := time.Until(cl.Deadline); left < 3900*time.Millisecond || left > 4*time.Second {
			t.Errorf("%v are left", left)
		}
		for i, want := range []string{"/api/tasks/claim", "/api/tasks/17/extend", "/api/tasks/claim", "/api/tasks/17/extend"} {
			if got := s.requests()[i].path; got != want {
				t.Errorf("request %d is %s, want %s", i, got, want)
			}
		}
	})
}

// The lease of a claim that waited began when there was a task, not when its request was first sent.
func TestClaimNext_countsTheLeaseOfARepeatFromItsRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, c := talkInMemory(t, slowly(5*time.Second, says(502, "")), says(200, leased(9_500, `,"repeated":true`)))
		defer c.Close()
		cl, err := c.ClaimNext(t.Context(), ClaimRequest{WorkerID: "w1", Wait: time.Minute, Lease: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if left := time.Until(cl.Deadline); left < 9*time.Second || left > 9_500*time.Millisecond {
			t.Errorf("%v are left", left)
		}
	})
}

// A node that has not answered at the end of the wait hangs, so another one is asked with the same id.
func TestClaimNext_leavesANodeThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, c := talkInMemory(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, says(200, leased(3_600_000, "")))
		defer c.Close()
		start := time.Now()
		if _, err := c.ClaimNext(t.Context(), ClaimRequest{WorkerID: "w1", Wait: time.Hour, Lease: time.Hour}); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d < repeat.PollMax || d > repeat.PollMax+waitGrace+time.Second {
			t.Errorf("it took %v", d)
		}
		got := s.requests()
		if a, b := got[0].field(t, "claim_request_id"), got[1].field(t, "claim_request_id"); a != b {
			t.Errorf("the request ids are %v and %v", a, b)
		}
	})
}

func TestClaimNext_doesNotAskInATightLoop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, c := talkInMemory(t, refuses(wire.CodeNoPendingTasks)) // at once
		defer c.Close()
		if _, err := c.ClaimNext(t.Context(), ClaimRequest{WorkerID: "w1", Wait: 2 * time.Second}); !errors.Is(err, ErrNoTasks) {
			t.Errorf("got %v", err)
		}
		if n := len(s.requests()); n > 21 {
			t.Errorf("%d requests in 2 s", n)
		}
	})
}

func TestClaimNext_refusesANegativeWait(t *testing.T) {
	t.Parallel()
	s, c := talk(t, says(200, claimedTask))
	if _, err := c.ClaimNext(t.Context(), ClaimRequest{WorkerID: "w1", Wait: -1}); err == nil {
		t.Error("no error")
	}
	if n := len(s.requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

// Waiting claims have their own connections: even more of them than the client has other connections do not hold up
// extends.
func TestClaimNext_leavesOthersTheirConnections(t *testing.T) {
	t.Parallel()
	waiting := make(chan struct{}, connsMax)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/tasks/claim" {
			io.Copy(io.Discard, r.Body) // otherwise the server does not notice that the client is gone
			select {
			case waiting <- struct{}{}:
			default:
			}
			<-r.Context().Done()
			return
		}
		fmt.Fprint(w, pendingTask)
	}))
	defer server.Close()
	c := clientOf(t, server.URL)
	ctx, cancel := context.WithCancel(t.Context())
	var claims sync.WaitGroup
	for range connsMax {
		claims.Go(func() { c.ClaimNext(ctx, ClaimRequest{WorkerID: "w1", Wait: time.Hour}) })
	}
	for range connsMax {
		<-waiting
	}
	// The client gives up connections that are silent for longer than this.
	getCtx, stop := context.WithTimeout(t.Context(), headerTimeout-time.Second)
	defer stop()
	if _, err := c.Get(getCtx, "17"); err != nil {
		t.Error(err)
	}
	cancel()
	claims.Wait()
}

// A client with an endless Timeout can still wait for tasks.
func TestClaimNext_endlessTimeout(t *testing.T) {
	t.Parallel()
	s := &script{replies: []reply{says(200, claimedTask)}}
	c, err := newClient(Config{Endpoints: []string{"http://memory"}, Timeout: math.MaxInt64}, memoryTransport{s}, memoryTransport{s})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if cl, err := c.ClaimNext(t.Context(), ClaimRequest{WorkerID: "w1", Wait: time.Second}); err != nil || cl.Token != 5 {
		t.Errorf("%+v, %v", cl, err)
	}
}
