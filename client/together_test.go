package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client/internal/lane"
)

// crowded is a client whose lanes are full of single calls, so that all others share requests. The test answers its
// requests one by one.
type crowded struct {
	*Client
	t *testing.T

	mu  sync.Mutex
	got []*held
}

// held is a request that the server has received.
type held struct {
	path, body string
	answered   chan struct{}
	status     int
	answer     string
	gone       context.Context
}

func (c *crowded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	h := &held{path: r.URL.Path, body: string(body), answered: make(chan struct{}), gone: r.Context()}
	c.mu.Lock()
	c.got = append(c.got, h)
	c.mu.Unlock()
	select {
	case <-h.answered:
	case <-r.Context().Done():
	}
	w.Header().Set("X-Request-Id", "R")
	if h.status == 503 {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(max(h.status, 200))
	io.WriteString(w, h.answer)
}

// RoundTrip is memoryTransport's; status 0 is a broken connection.
func (c *crowded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := memoryTransport{c}.RoundTrip(r)
	if err == nil && r.Context().Err() != nil {
		return nil, r.Context().Err()
	}
	if err == nil && resp.ContentLength == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	return resp, err
}

// crowd runs a test in a bubble with a crowded client.
func crowd(t *testing.T, test func(t *testing.T, c *crowded)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &crowded{t: t}
		var err error
		if c.Client, err = newClient(Config{Endpoints: []string{"http://memory"}, Timeout: time.Minute}, sentTransport{c}, sentTransport{c}); err != nil {
			t.Fatal(err)
		}
		for _, l := range []*lane.Lane[callResult]{c.lanes.submits, c.lanes.claims, c.lanes.settles, c.lanes.extends} {
			for l.Alone() {
			}
		}
		test(t, c)
		c.Close()
	})
}

// request returns the n-th request, once everything possible has been sent, and checks its path.
func (c *crowded) request(n int, path string) *held {
	c.t.Helper()
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if n >= len(c.got) {
		c.t.Fatalf("there are %d requests, want one more", len(c.got))
	}
	if c.got[n].path != path {
		c.t.Fatalf("request %d is to %s with %s, want %s", n, c.got[n].path, c.got[n].body, path)
	}
	return c.got[n]
}

func (c *crowded) requests() int {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.got)
}

func (h *held) say(status int, answer string) {
	h.status, h.answer = status, answer
	close(h.answered)
}

// submits begins submits of tasks with these keys, and returns once the calls wait.
func (c *crowded) submits(ctx context.Context, keys ...string) []chan error {
	var calls []func() error
	for _, key := range keys {
		calls = append(calls, func() error {
			id, err := c.Submit(ctx, Task{IdempotencyKey: key, Payload: []byte("1")})
			if err == nil && id != key {
				err = fmt.Errorf("the task with key %s has the id %s", key, id)
			}
			return err
		})
	}
	return begin(calls...)
}

// begin begins calls one after the other and returns channels for their errors.
func begin(calls ...func() error) (errs []chan error) {
	for _, call := range calls {
		err := make(chan error, 1)
		go func() { err <- call() }()
		errs = append(errs, err)
		synctest.Wait()
	}
	return errs
}

// hold sends a submit behind which others queue, and returns its request.
func (c *crowded) hold(n int) *held {
	c.t.Helper()
	c.submits(context.Background(), "1000")
	return c.request(n, "/api/tasks")
}

// ids answers a submit of many, using the keys as ids.
func ids(keys ...string) string {
	results := make([]string, len(keys))
	for i, key := range keys {
		results[i] = `{"id":` + key + `,"created":true}`
	}
	return `{"success":true,"results":[` + strings.Join(results, ",") + `],"failed":0}`
}

func tasksOf(keys ...string) string {
	items := make([]string, len(keys))
	for i, key := range keys {
		items[i] = `{"params":1,"idempotency_key":"` + key + `"}`
	}
	return `{"tasks":[` + strings.Join(items, ",") + `]}`
}

func wantErrors(t *testing.T, errs []chan error, want error) {
	t.Helper()
	for i, err := range errs {
		if got := <-err; !errors.Is(got, want) {
			t.Errorf("call %d: %v, want %v", i, got, want)
		}
	}
}

// sentTransport tells the client that it has a connection, as a real transport does.
type sentTransport struct{ next http.RoundTripper }

func (s sentTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil && trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{})
	}
	return s.next.RoundTrip(r)
}

// If the answer is lost, the request is repeated byte for byte, with the same keys even if the client made them.
func TestTogether_repeatedAsOne(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]func(h *held){
		"lost answer":  func(h *held) { h.say(200, "") },
		"overloaded":   func(h *held) { h.say(503, `{"success":false,"error":"E","code":"overloaded","message":"M"}`) },
		"rate limited": func(h *held) { h.say(429, `{"success":false,"error":"E","code":"rate_limited","message":"M"}`) },
		"unknown":      func(h *held) { h.say(504, `{"success":false,"error":"E","code":"outcome_unknown","message":"M"}`) },
		"too few":      func(h *held) { h.say(200, ids("2")) },
		"half":         func(h *held) { h.say(200, ids("2", "3")[:40]) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			crowd(t, func(t *testing.T, c *crowded) {
				first := c.hold(0)
				errs := begin(
					func() error { _, err := c.Submit(context.Background(), Task{Payload: []byte("1")}); return err },
					func() error { _, err := c.Submit(context.Background(), Task{Payload: []byte("2")}); return err },
				)
				first.say(200, ids("1000"))
				lostOne := c.request(1, "/api/tasks")
				if n := strings.Count(lostOne.body, "idempotency_key"); n != 2 {
					t.Fatalf("%d keys in %s", n, lostOne.body)
				}
				lost(lostOne)
				synctest.Wait()
				<-time.After(10 * time.Second)
				again := c.request(2, "/api/tasks")
				if diff := cmp.Diff(lostOne.body, again.body); diff != "" {
					t.Errorf("the repeat is another request (-first +repeat):\n%s", diff)
				}
				again.say(200, ids("2", "3"))
				wantErrors(t, errs, nil)
			})
		})
	}
}

// Calls that wait while a request is out go together, in order, and each caller gets its own result.
func TestTogether_ownResults(t *testing.T) {
	t.Parallel()
	crowd(t, func(t *testing.T, c *crowded) {
		first := c.hold(0)
		errs := c.submits(t.Context(), "1", "2", "3")
		first.say(200, ids("1000"))
		h := c.request(1, "/api/tasks")
		if diff := cmp.Diff(tasksOf("1", "2", "3"), h.body); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
		h.say(200, ids("1", "2", "3"))
		wantErrors(t, errs, nil)
	})
}

// Each task keeps its own caller's trace context, if that is valid.
func TestTogether_traces(t *testing.T) {
	t.Parallel()
	crowd(t, func(t *testing.T, c *crowded) {
		const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		first := c.hold(0)
		errs := c.submits(WithTraceparent(t.Context(), trace), "1")
		errs = append(errs, c.submits(WithTraceparent(t.Context(), "00-x"), "2")...)
		errs = append(errs, c.submits(t.Context(), "3")...)
		first.say(200, ids("1000"))
		h := c.request(1, "/api/tasks")
		want := strings.Replace(tasksOf("1", "2", "3"), `{"params"`, `{"traceparent":"`+trace+`","params"`, 1)
		if diff := cmp.Diff(want, h.body); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
		h.say(200, ids("1", "2", "3"))
		wantErrors(t, errs, nil)
	})
}

// If a request is refused as a whole, nothing was done, and each call is made by itself.
func TestTogether_refusedAsAWhole(t *testing.T) {
	t.Parallel()
	for code, status := range map[wire.Code]int{wire.CodeInvalidRequest: 400, wire.CodeForbidden: 403, wire.CodeTaskNotFound: 404, wire.CodePayloadTooLarge: 413} {
		crowd(t, func(t *testing.T, c *crowded) {
			first := c.hold(0)
			errs := c.submits(t.Context(), "1", "2")
			first.say(200, ids("1000"))
			refusal := fmt.Sprintf(`{"success":false,"error":"E","code":%q,"message":"M","request_id":"R"}`, code)
			c.request(1, "/api/tasks").say(status, refusal)
			for n := 2; n < 4; n++ {
				h := c.request(n, "/api/tasks")
				switch {
				case strings.Contains(h.body, `{"params":1,"idempotency_key":"1"}`):
					h.say(201, `{"success":true,"task":{"id":1},"created":true}`)
				case h.body == `{"params":1,"idempotency_key":"2"}`:
					h.say(status, refusal)
				default:
					t.Errorf("%d: request %s", status, h.body)
				}
			}
			wantErrors(t, errs[:1], nil)
			var e *Error
			if err := <-errs[1]; !errors.As(err, &e) || e.Status != status || errors.Is(err, ErrOutcomeUnknown) {
				t.Errorf("%d: %v", status, err)
			}
			// The reason may be one of the calls, or their number.
			c.hold(4)
			c.submits(t.Context(), "3", "4", "5")
			c.request(4, "/api/tasks").say(200, ids("1000"))
			if h := c.request(5, "/api/tasks"); h.body != tasksOf("3", "4") {
				t.Errorf("after the refusal of two together, %s", h.body)
			}
		})
	}
}

// A refusal that does not depend on the calls, because of the key or a fault of the server, goes to all callers.
func TestTogether_refusedForAll(t *testing.T) {
	t.Parallel()
	for code, status := range map[wire.Code]int{wire.CodeUnauthorized: 401, wire.CodeInternal: 500} {
		crowd(t, func(t *testing.T, c *crowded) {
			first := c.hold(0)
			errs := c.submits(t.Context(), "1", "2")
			first.say(200, ids("1000"))
			c.request(1, "/api/tasks").say(status, fmt.Sprintf(`{"success":false,"error":"E","code":%q,"message":"M","request_id":"R"}`, code))
			var e, other *Error
			if !errors.As(<-errs[0], &e) || !errors.As(<-errs[1], &other) || e.Status != status || other.Status != status || e == other {
				t.Errorf("%d: %v and %v", status, e, other)
			}
			if n := c.requests(); n != 2 {
				t.Errorf("%d: %d requests, want 2", status, n)
			}
		})
	}
}

// A refused call gets its own error, as if it had been made by itself, without its index in the request.
func TestTogether_oneRefused(t *testing.T) {
	t.Parallel()
	crowd(t, func(t *testing.T, c *crowded) {
		first := c.hold(0)
		errs := c.submits(t.Context(), "1", "2")
		first.say(200, ids("1000"))
		c.request(1, "/api/tasks").say(200, `{"success":true,"results":[{"id":1,"created":true},`+
			`{"error":"Invalid tasks[1].priority: must be x","code":"invalid_task","message":"Correct it","field":"tasks[1].priority"}],"failed":1}`)
		wantErrors(t, errs[:1], nil)
		err := <-errs[1]
		var got *Error
		if !errors.As(err, &got) || !errors.Is(err, ErrInvalidTask) {
			t.Fatal(err)
		}
		want := &Error{
			Status: 400, Code: "invalid_task", Text: "Invalid priority: must be x", Advice: "Correct it", RequestID: "R",
			Details: json.RawMessage(`{"error":"Invalid priority: must be x","code":"invalid_task","message":"Correct it","field":"priority"}`),
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
}

// A caller that leaves the queue knows that nothing was written. If its request is out, its outcome is unknown and
// the request continues for the others.
func TestTogether_callersLeave(t *testing.T) {
	t.Parallel()
	crowd(t, func(t *testing.T, c *crowded) {
		first := c.hold(0)
		why := errors.New("why")
		ctx, leave := context.WithCancelCause(t.Context())
		queued := c.submits(ctx, "1")
		leave(why)
		err := <-queued[0]
		if errors.Is(err, ErrOutcomeUnknown) || !errors.Is(err, context.Canceled) || !errors.Is(err, why) {
			t.Errorf("left the queue: %v", err)
		}
		ctx, leave = context.WithCancelCause(t.Context())
		sent := c.submits(ctx, "2")
		stays := c.submits(t.Context(), "3")
		first.say(200, ids("1000"))
		h := c.request(1, "/api/tasks")
		if h.body != tasksOf("2", "3") {
			t.Errorf("the request is %s", h.body)
		}
		leave(why)
		if err := <-sent[0]; !errors.Is(err, ErrOutcomeUnknown) || !errors.Is(err, context.Canceled) || !errors.Is(err, why) {
			t.Errorf("left when it was sent: %v", err)
		}
		synctest.Wait()
		if h.gone.Err() != nil {
			t.Error("the request ended with one of its callers")
		}
		h.say(200, ids("2", "3"))
		wantErrors(t, stays, nil)
	})
}

// A task that a shared request claimed for a caller that left is released, as the server does for a single claim
// whose connection is gone.
func TestTogether_claimOfWhoLeft(t *testing.T) {
	t.Parallel()
	crowd(t, func(t *testing.T, c *crowded) {
		claimed := func(id int) string {
			return fmt.Sprintf(`{"success":true,"task":{"id":%d,"params":1,"status":"claimed","worker_id":"w1","claim_token":%d,"lease_remaining_ms":30000}}`, id, id)
		}
		claim := func(ctx context.Context) []chan error {
			return begin(func() error { _, err := c.ClaimNext(ctx, ClaimRequest{WorkerID: "w1"}); return err })
		}
		first := claim(t.Context())
		h := c.request(0, "/api/batch")
		why := errors.New("why")
		ctx, leave := context.WithCancelCause(t.Context())
		left := claim(ctx)
		synctest.Wait()
		stays := claim(t.Context())
		h.say(200, `{"success":true,"results":[`+claimed(1)+`],"failed":0}`)
		wantErrors(t, first, nil)
		h = c.request(1, "/api/batch")
		leave(why)
		if err := <-left[0]; !errors.Is(err, context.Canceled) || !errors.Is(err, why) || !errors.Is(err, ErrOutcomeUnknown) {
			t.Errorf("the one that left: %v", err)
		}
		h.say(200, `{"success":true,"results":[`+claimed(2)+`,`+claimed(3)+`],"failed":0}`)
		wantErrors(t, stays, nil)
		h = c.request(2, "/api/batch")
		if !strings.Contains(h.body, `"op":"release","id":2,`) || !strings.Contains(h.body, `"claim_token":2`) {
			t.Errorf("after the answer was sent %s", h.body)
		}
		h.say(200, `{"success":true,"results":[{"success":true}],"failed":0}`)
	})
}

// Each caller leaves at its own deadline; the request continues until the latest one.
func TestTogether_deadlines(t *testing.T) {
	t.Parallel()
	crowd(t, func(t *testing.T, c *crowded) {
		first := c.hold(0)
		short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		early := c.submits(short, "1")
		late := c.submits(t.Context(), "2")
		first.say(200, ids("1000"))
		h := c.request(1, "/api/tasks")
		if err := <-early[0]; !errors.Is(err, ErrOutcomeUnknown) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("at its deadline: %v", err)
		}
		if h.gone.Err() != nil {
			t.Error("the request ended at the earlier deadline")
		}
		h.say(200, ids("1", "2"))
		wantErrors(t, late, nil)
	})
}

// Close ends waiting and sent calls with ErrClosed, and waits for them.
func TestTogether_close(t *testing.T) {
	t.Parallel()
	crowd(t, func(t *testing.T, c *crowded) {
		out := c.submits(t.Context(), "1")
		queued := c.submits(t.Context(), "2")
		h := c.request(0, "/api/tasks")
		c.Close()
		if h.gone.Err() == nil {
			t.Error("Close has returned while the request is out")
		}
		if err := <-out[0]; !errors.Is(err, ErrClosed) || !errors.Is(err, ErrOutcomeUnknown) {
			t.Errorf("out: %v", err)
		}
		if err := <-queued[0]; !errors.Is(err, ErrClosed) || errors.Is(err, ErrOutcomeUnknown) {
			t.Errorf("in the queue: %v", err)
		}
		wantErrors(t, c.submits(t.Context(), "3"), ErrClosed)
	})
}

// Tasks with steps or follow-ups, and large ones, do not share requests.
func TestTogether_goesAlone(t *testing.T) {
	t.Parallel()
	crowd(t, func(t *testing.T, c *crowded) {
		claims := c.someClaims("7", "8", "9")
		n := c.requests()
		parent := Task{Payload: []byte("1")}
		parent.AddStep("a", Task{Payload: []byte("2")})
		large := make([]byte, lane.CallBytesMax)
		for _, call := range []struct {
			path string
			do   func() error
		}{
			{"/api/tasks", func() error { _, err := c.Submit(t.Context(), parent); return err }},
			{"/api/tasks", func() error { _, err := c.Submit(t.Context(), Task{Payload: large}); return err }},
			{"/api/tasks/7/complete", func() error { return claims[0].Complete(t.Context(), nil, Task{Payload: []byte("1")}) }},
			{"/api/tasks/8/complete", func() error { return claims[1].Complete(t.Context(), large) }},
		} {
			begin(call.do)
			h := c.request(n, call.path)
			if strings.HasPrefix(h.body, `{"tasks":`) {
				t.Errorf("%.100s went with others", h.body)
			}
			n++
		}
	})
}

// someClaims claims the tasks with these ids in a single call.
func (c *crowded) someClaims(ids ...string) []*Claim {
	tasks := make([]string, len(ids))
	for i, id := range ids {
		tasks[i] = `{"id":` + id + `,"task_type":"mail","params":1,"status":"claimed","worker_id":"w1","claim_token":` + id + `,"lease_remaining_ms":30000}`
	}
	n := c.requests()
	var claims []*Claim
	errs := begin(func() (err error) {
		claims, err = c.ClaimMany(context.Background(), ClaimRequest{WorkerID: "w1"}, 100)
		return err
	})
	c.request(n, claimPath).say(200, `{"success":true,"tasks":[`+strings.Join(tasks, ",")+`]}`)
	wantErrors(c.t, errs, nil)
	return claims
}

// Settles share requests, each with its own token, and extends do not wait for them.
func TestTogether_settlesAndExtends(t *testing.T) {
	t.Parallel()
	crowd(t, func(t *testing.T, c *crowded) {
		cl := c.someClaims("1", "2", "3", "4", "5")
		first := begin(func() error { return cl[0].Complete(t.Context(), []byte("1")) })
		out := c.request(1, "/api/batch")
		rest := begin(
			func() error { return cl[1].Complete(t.Context(), []byte(`"b"`)) },
			func() error { return cl[2].Fail(t.Context(), errors.New("no")) },
			func() error { return cl[3].Release(t.Context(), time.Second) },
		)
		extend := begin(func() error { _, err := cl[4].Extend(t.Context(), time.Minute, nil); return err })
		h := c.request(2, "/api/batch") // while the settle is out and others wait
		if want := `{"return":"minimal","ops":[{"op":"extend","id":5,"worker_id":"w1","claim_token":5,"lease_ms":60000}]}`; h.body != want {
			t.Errorf("the extend is %s", h.body)
		}
		h.say(200, `{"success":true,"results":[{"success":true,"task":{"id":5},"lease_remaining_ms":60000,"cancel_requested":false}],"failed":0}`)
		wantErrors(t, extend, nil)
		if left := time.Until(cl[4].LeaseEndsAt()); left < 59*time.Second {
			t.Errorf("after the extend %v of the lease are left", left)
		}
		out.say(200, `{"success":true,"results":[{"success":true,"task":{"id":1}}],"failed":0}`)
		wantErrors(t, first, nil)
		h = c.request(3, "/api/batch")
		want := `{"return":"minimal","ops":[{"op":"complete","id":2,"worker_id":"w1","claim_token":2,"result":"b"},` +
			`{"op":"fail","id":3,"worker_id":"w1","claim_token":3,"error":"no"},{"op":"release","id":4,"worker_id":"w1","claim_token":4,"delay_ms":1000}]}`
		if h.body != want {
			t.Errorf("the others are %s,\nwant %s", h.body, want)
		}
		stale := `{"success":false,"error":"Claim is no longer valid","code":"stale_claim","message":"Stop","request_id":"R","task_id":3,"status":"pending","worker_id":null}`
		h.say(200, `{"success":true,"results":[{"success":true,"task":{"id":2}},`+stale+`,{"success":true,"task":{"id":4}}],"failed":1}`)
		wantErrors(t, []chan error{rest[0], rest[2]}, nil)
		err := <-rest[1]
		var e *Error
		if !errors.Is(err, ErrStaleClaim) || !errors.As(err, &e) || string(e.Details) != stale || e.Status != 409 || e.RequestID != "R" || e.Text != "Claim is no longer valid" {
			t.Errorf("the refused one: %v, %+v", err, e)
		}
	})
}

// The lease of a claim is counted from before its request was sent, however long the call waited in the queue or was
// repeated.
func TestTogether_leases(t *testing.T) {
	t.Parallel()
	crowd(t, func(t *testing.T, c *crowded) {
		var cl *Claim
		claim := func() (err error) {
			cl, err = c.ClaimNext(t.Context(), ClaimRequest{WorkerID: "w1", Lease: 10 * time.Second})
			return err
		}
		none := `{"success":true,"results":[{"success":false,"error":"none","code":"no_pending_tasks","message":"none","request_id":"R"}],"failed":1}`
		first := begin(func() error { _, err := c.ClaimNext(t.Context(), ClaimRequest{WorkerID: "w2"}); return err })
		errs := begin(claim)
		c.request(0, "/api/batch").say(200, none)
		wantErrors(t, first, ErrNoTasks)
		lost := c.request(1, "/api/batch")
		sent := time.Now()
		<-time.After(time.Second)
		lost.say(200, "")
		synctest.Wait()
		<-time.After(time.Second)
		h := c.request(2, "/api/batch")
		if h.body != lost.body || !strings.Contains(h.body, `"claim_request_id":"`) {
			t.Errorf("repeated as %s, first was %s", h.body, lost.body)
		}
		<-time.After(time.Second)
		h.say(200, `{"success":true,"results":[{"success":true,"task":{"id":1,"params":1,"status":"claimed","worker_id":"w1","claim_token":1,`+
			`"lease_remaining_ms":9900,"claim_state":"live"},"repeated":true}],"failed":0}`)
		wantErrors(t, errs, nil)
		if want := sent.Add(9990 * time.Millisecond); !cl.Repeated || cl.Deadline.After(want) {
			t.Errorf("repeated %v, the lease ends %v after the first try, want %v at most", cl.Repeated, cl.Deadline.Sub(sent), want.Sub(sent))
		}
	})
}

// If an answer's results cannot be read, the outcome of the calls is unknown.
func TestTogether_unreadable(t *testing.T) {
	t.Parallel()
	crowd(t, func(t *testing.T, c *crowded) {
		errs := c.submits(t.Context(), "1")
		c.request(0, "/api/tasks").say(200, `{"success":true,"results":[{"id":"x"}],"failed":0}`)
		wantErrors(t, errs, ErrOutcomeUnknown)
		errs = c.submits(t.Context(), "1")
		c.request(1, "/api/tasks").say(200, `{"success":true,"results":[{"created":true}],"failed":0}`)
		wantErrors(t, errs, ErrOutcomeUnknown)
		cl := c.someClaims("1")[0]
		for _, result := range []string{`{"success":true,"claimed":[]}`, `{"success":false}`, `{"success":false,"code":"later"}`} {
			n := c.requests()
			errs := begin(func() error { return cl.Complete(t.Context(), nil) })
			c.request(n, "/api/batch").say(200, `{"success":true,"results":[`+result+`],"failed":0}`)
			wantErrors(t, errs, ErrOutcomeUnknown)
		}
	})
}

func TestPlaceOf(t *testing.T) {
	t.Parallel()
	for field, want := range map[string]string{
		"tasks[17].priority": "tasks[17].", "tasks[0].steps[1].params": "tasks[0].", "priority": "", "tasks": "", "tasks[x].y": "", "tasks[1]": "",
	} {
		if got := placeOf(field); got != want {
			t.Errorf("%s: %q, want %q", field, got, want)
		}
	}
}

// A shared request knows its length, and the transport can send it again.
func TestTogether_request(t *testing.T) {
	t.Parallel()
	c, err := New(Config{Endpoints: []string{"http://127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	j := &lane.Joined{Open: "[", Items: [][2][]byte{{nil, []byte("1")}, {[]byte("2")}}}
	req, err := c.newRequest(t.Context(), "http://127.0.0.1:1", Request{Method: http.MethodPost, Path: "/x", joined: j}, false)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		body, err := req.GetBody()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(body); err != nil || string(got) != "[1,2]}" || req.ContentLength != int64(len(got)) {
			t.Errorf("%q, %v, a length of %d", got, err, req.ContentLength)
		}
	}
	if got := req.Header.Get("Content-Type"); got != "application/json" {
		t.Errorf("Content-Type %q", got)
	}
}
