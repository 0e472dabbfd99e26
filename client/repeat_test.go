package client

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claimq/claimq/api/wire"
)

// losses are the ways in which an answer is lost.
var losses = map[string]reply{
	"connection closed":        breaks,
	"closed within the answer": breaksMidway,
	"a proxy's 502":            says(502, "<html>bad gateway</html>"),
	"a proxy's 503":            says(503, "try later"),
	"a proxy's 504":            says(504, ""),
	"a proxy's 400":            says(400, "<html>bad request</html>"),
	"a proxy's 403":            says(403, `{"code":"blocked","message":"by the rules"}`),
	"a proxy's 404":            says(404, `{"success":false,"error":"no such route"}`),
	"a proxy's 408":            says(408, ""),
	"a proxy's 429":            says(429, ""),
	"a proxy's redirect":       movesTo(302, "https://login.example/?next=/"),
	"a proxy's 307":            movesTo(307, "https://login.example/?next=/"),
	"outcome_unknown":          refuses(wire.CodeOutcomeUnknown),
	"not our answer":           says(200, "<html>log in first</html>"),
}

// movesTo redirects like a proxy.
func movesTo(status int, location string) reply {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", location)
		w.WriteHeader(status)
	}
}

func TestSubmit_repeatsWithTheSameKey(t *testing.T) {
	t.Parallel()
	for name, lost := range losses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := talk(t, lost, lost, says(201, pendingTask))
			id, err := c.Submit(t.Context(), Task{Payload: []byte(`{}`)})
			if err != nil || id != "17" {
				t.Fatalf("got %q, %v", id, err)
			}
			got := s.requests()
			if len(got) != 3 {
				t.Fatalf("got %d requests, want 3", len(got))
			}
			key := got[0].field(t, "idempotency_key")
			if key == nil || key == "" {
				t.Fatal("no key was made")
			}
			for _, r := range got {
				if r.field(t, "idempotency_key") != key {
					t.Errorf("a repeat has another key: %s", r.body)
				}
			}
		})
	}
}

func TestClaimNext_repeatsWithTheSameRequestID(t *testing.T) {
	t.Parallel()
	for name, lost := range losses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := talk(t, lost, says(200, claimedTask))
			cl, err := c.ClaimNext(t.Context(), ClaimRequest{WorkerID: "w1"})
			if err != nil || cl.Token != 5 {
				t.Fatalf("got %+v, %v", cl, err)
			}
			got := s.requests()
			if a, b := got[0].field(t, "claim_request_id"), got[1].field(t, "claim_request_id"); a == nil || a != b {
				t.Errorf("request ids are %v and %v", a, b)
			}
			if _, err := c.ClaimNext(t.Context(), ClaimRequest{WorkerID: "w1"}); err != nil {
				t.Fatal(err)
			}
			got = s.requests()
			if a, b := got[0].field(t, "claim_request_id"), got[2].field(t, "claim_request_id"); a == b {
				t.Errorf("two calls have the same request id %v", a)
			}
		})
	}
}

func TestClaim_settlesAgainWithTheToken(t *testing.T) {
	t.Parallel()
	calls := map[string]func(context.Context, *Claim) error{
		"complete": func(ctx context.Context, cl *Claim) error { return cl.Complete(ctx, []byte("1")) },
		"fail":     func(ctx context.Context, cl *Claim) error { return cl.Fail(ctx, errors.New("x")) },
		"release":  func(ctx context.Context, cl *Claim) error { return cl.Release(ctx, 0) },
		"extend": func(ctx context.Context, cl *Claim) error {
			_, err := cl.Extend(ctx, time.Minute, nil)
			return err
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, cl := claimFor(t, breaks, says(200, okAnswer))
			if err := call(t.Context(), cl); err != nil {
				t.Fatal(err)
			}
			for _, r := range s.requests()[1:] {
				if r.path != "/api/tasks/17/"+name || r.field(t, "worker_id") != "w1" || r.field(t, "claim_token") != 5.0 {
					t.Errorf("got %s %s", r.path, r.body)
				}
			}
		})
	}
}

func TestRetry_isNotRepeatedWhenItMayHaveBeenDone(t *testing.T) {
	t.Parallel()
	for name, lost := range losses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := talk(t, lost, says(200, okAnswer))
			if err := c.Retry(t.Context(), "17"); !errors.Is(err, ErrOutcomeUnknown) {
				t.Errorf("got %v", err)
			}
			if n := len(s.requests()); n != 1 {
				t.Errorf("got %d requests, want 1", n)
			}
		})
	}
	t.Run("but when nothing was written", func(t *testing.T) {
		t.Parallel()
		s, c := talk(t, refuses(wire.CodeNoLeader), refuses(wire.CodeOverloaded), refuses(wire.CodeShuttingDown), says(200, okAnswer))
		if err := c.Retry(t.Context(), "17"); err != nil {
			t.Error(err)
		}
		if n := len(s.requests()); n != 4 {
			t.Errorf("got %d requests, want 4", n)
		}
	})
	t.Run("but when there was no connection", func(t *testing.T) {
		t.Parallel()
		_, dead := node(t, breaks)
		dead.Close()
		s, alive := node(t, says(200, okAnswer))
		c := clientOf(t, dead.URL, alive.URL)
		if err := c.Retry(t.Context(), "17"); err != nil {
			t.Error(err)
		}
		if n := len(s.requests()); n != 1 {
			t.Errorf("got %d requests, want 1", n)
		}
	})
}

func TestDelete_takesNotFoundForDoneAfterALostAnswer(t *testing.T) {
	t.Parallel()
	_, c := talk(t, breaks, refuses(wire.CodeTaskNotFound))
	if err := c.Delete(t.Context(), "17"); err != nil {
		t.Errorf("after a lost answer: %v", err)
	}
	_, c = talk(t, refuses(wire.CodeNoLeader), refuses(wire.CodeTaskNotFound))
	if err := c.Delete(t.Context(), "17"); !errors.Is(err, ErrTaskNotFound) {
		t.Errorf("after nothing was written: %v", err)
	}
}

func TestGet_isRepeated(t *testing.T) {
	t.Parallel()
	for name, lost := range losses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, c := talk(t, lost, says(200, pendingTask))
			if _, err := c.Get(t.Context(), "17"); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestCall_isNotRepeatedAfterARefusal(t *testing.T) {
	t.Parallel()
	for _, code := range []wire.Code{wire.CodeInvalidTask, wire.CodeForbidden, wire.CodeTaskNotFound, wire.CodeStaleClaim, wire.CodeInternal} {
		s, c := talk(t, refuses(code))
		if _, err := c.Submit(t.Context(), Task{Payload: []byte("1")}); err == nil {
			t.Errorf("%s: no error", code)
		}
		if n := len(s.requests()); n != 1 {
			t.Errorf("%s: got %d requests, want 1", code, n)
		}
	}
}

// withRetryAfter adds the header.
func withRetryAfter(seconds string, r reply) reply {
	return func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Retry-After", seconds)
		r(w, req)
	}
}

func TestCall_waitsAsLongAsTheServerAsks(t *testing.T) {
	t.Parallel()
	for _, code := range []wire.Code{wire.CodeOverloaded, wire.CodeRateLimited} {
		synctest.Test(t, func(t *testing.T) {
			asked := withRetryAfter("3", refuses(code))
			_, c := talkInMemory(t, asked, asked, says(201, pendingTask))
			start := time.Now()
			if _, err := c.Submit(t.Context(), Task{Payload: []byte("1")}); err != nil {
				t.Fatal(err)
			}
			if d := time.Since(start); d < 6*time.Second || d > 7*time.Second {
				t.Errorf("%s: took %v, want a little over 6 s", code, d)
			}
			c.Close()
		})
	}
}

// If a node cannot reach the issuer of tokens, another one is asked.
func TestCall_leavesANodeThatCannotCheckTokens(t *testing.T) {
	t.Parallel()
	cannot := says(503, `{"success":false,"error":"E","code":"overloaded","message":"M","request_id":"R","reason":"issuer"}`)
	cut, cutServer := node(t, cannot, says(200, okAnswer))
	alive, aliveServer := node(t, says(200, okAnswer))
	c := clientOf(t, cutServer.URL, aliveServer.URL)
	if err := c.Retry(t.Context(), "17"); err != nil {
		t.Error(err)
	}
	if a, b := len(cut.requests()), len(alive.requests()); a != 1 || b != 1 {
		t.Errorf("%d and %d requests, want one each", a, b)
	}
}

func TestCall_givesUpInTime(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		replies []reply
		want    []error
		not     error
	}{
		"no leader":            {[]reply{refuses(wire.CodeNoLeader)}, []error{ErrNoLeader, context.DeadlineExceeded}, ErrOutcomeUnknown},
		"overloaded":           {[]reply{refuses(wire.CodeOverloaded)}, []error{ErrOverloaded, context.DeadlineExceeded}, ErrOutcomeUnknown},
		"asks for more time":   {[]reply{withRetryAfter("60", refuses(wire.CodeRateLimited))}, []error{ErrRateLimited}, ErrOutcomeUnknown},
		"unknown":              {[]reply{refuses(wire.CodeOutcomeUnknown)}, []error{ErrOutcomeUnknown, context.DeadlineExceeded}, ErrNoLeader},
		"unknown, then nobody": {[]reply{says(502, ""), refuses(wire.CodeNoLeader)}, []error{ErrOutcomeUnknown, ErrNoLeader}, ErrOverloaded},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				_, c := talkInMemory(t, test.replies...)
				defer c.Close()
				start := time.Now()
				_, err := c.Submit(t.Context(), Task{Payload: []byte("1")})
				if d := time.Since(start); d > callTimeout {
					t.Errorf("took %v", d)
				}
				for _, want := range test.want {
					if !errors.Is(err, want) {
						t.Errorf("%v is not %v", err, want)
					}
				}
				if errors.Is(err, test.not) {
					t.Errorf("%v is %v", err, test.not)
				}
			})
		})
	}
}

// A refusal of the repeat that came before the server could recognize it says nothing about the first try, whose
// answer was lost.
func TestCall_refusedInDoubt(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		refusal reply
		want    error
		unknown bool
	}{
		"a key that is known no more": {refuses(wire.CodeUnauthorized), ErrUnauthorized, true},
		"a role that it has no more":  {refuses(wire.CodeForbidden), ErrForbidden, true},
		"the server's own fault":      {refuses(wire.CodeInternal), nil, true},
		"the task itself":             {refuses(wire.CodeInvalidTask), ErrInvalidTask, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, doubted := range []bool{true, false} {
				replies := []reply{test.refusal}
				if doubted {
					replies = []reply{breaks, test.refusal}
				}
				_, c := talk(t, replies...)
				_, err := c.Submit(t.Context(), Task{Payload: []byte("1")})
				if got := errors.Is(err, ErrOutcomeUnknown); err == nil || test.want != nil && !errors.Is(err, test.want) || got != (test.unknown && doubted) {
					t.Errorf("after a lost answer %v: %v", doubted, err)
				}
			}
		})
	}
}

func TestCall_endsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, c := talkInMemory(t, refuses(wire.CodeNoLeader))
		defer c.Close()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(2*time.Second, cancel)
		err := c.Delete(ctx, "17")
		if !errors.Is(err, context.Canceled) || !errors.Is(err, ErrNoLeader) || errors.Is(err, ErrOutcomeUnknown) {
			t.Errorf("got %v", err)
		}
		if n := len(s.requests()); n < 3 || n > 20 {
			t.Errorf("%d requests in 2 s: the pauses are wrong", n)
		}
	})
}

func TestCall_ofAnEndedContextWritesNothing(t *testing.T) {
	t.Parallel()
	s, c := talk(t, says(200, okAnswer))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Retry(ctx, "17"); !errors.Is(err, context.Canceled) || errors.Is(err, ErrOutcomeUnknown) {
		t.Errorf("got %v", err)
	}
	if n := len(s.requests()); n != 0 {
		t.Errorf("got %d requests", n)
	}
}

func TestCall_boundsTheAnswer(t *testing.T) {
	t.Parallel()
	huge := says(200, `{"success":true,"message":"`+strings.Repeat("x", answerBytesMax)+`"}`)
	s, c := talk(t, huge)
	if _, err := c.Get(t.Context(), "17"); err == nil || errors.Is(err, ErrOutcomeUnknown) {
		t.Errorf("of a read: got %v", err)
	}
	if err := c.Delete(t.Context(), "17"); !errors.Is(err, ErrOutcomeUnknown) {
		t.Errorf("of a mutation: got %v", err)
	}
	if n := len(s.requests()); n != 2 {
		t.Errorf("got %d requests, want 2: a repeat would not help", n)
	}
}

// A truncated answer that begins as a success leaves the outcome unknown, and the call is repeated.
func TestClient_aSuccessThatIsNotWhole(t *testing.T) {
	t.Parallel()
	half := says(200, `{"success":true,"task":{"id":17,"status":"pending"}`)
	s, c := talk(t, half, says(201, pendingTask))
	if id, err := c.Submit(t.Context(), Task{Payload: []byte("1")}); id != "17" || err != nil || len(s.requests()) != 2 {
		t.Errorf("submit: %q, %v in %d requests, want the repeat's 17", id, err, len(s.requests()))
	}
	s, c = talk(t, half, says(200, pendingTask))
	if _, err := c.Cancel(t.Context(), "17"); err != nil || len(s.requests()) != 2 {
		t.Errorf("cancel: %v in %d requests", err, len(s.requests()))
	}
	s, c = talk(t, half)
	if err := c.Retry(t.Context(), "17"); !errors.Is(err, ErrOutcomeUnknown) || len(s.requests()) != 1 {
		t.Errorf("retry, which is not repeated: %v in %d requests, want ErrOutcomeUnknown", err, len(s.requests()))
	}
}
