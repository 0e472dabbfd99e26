package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claimq/claimq/api/wire"
)

// typesPath is the path before a type's name.
const typesPath = "/api/types/"

// office is a fake cluster with tasks, leases and tokens, just enough to run a worker. It uses the bubble's time.
type office struct {
	mu       sync.Mutex
	tasks    []*officeTask
	token    uint64
	lease    time.Duration          // default
	types    map[string]string      // further fields of GET /api/types/TYPE, by type
	defaults string                 // fields of GET /api/defaults
	requests map[string]wire.Answer // by claim_request_id
	underWay sync.WaitGroup         // requests, including those whose caller has left
	over     map[string]bool        // claim_request_ids that were asked for without a wait, which ends their waits
	changed  chan struct{}          // closed and replaced when a task becomes pending
	calls    []request              // all calls, in order
	// fault, if not nil, may answer a call instead of the office. before is false if the call was done and only its
	// answer is in question.
	fault func(r request, before bool) reply
}

type officeTask struct {
	wire.Task
	leaseEnds time.Time
	length    time.Duration // of the claim's lease
	lastToken uint64
	log       []string
	settled   string
	submitted []string // keys of follow-ups
	next      *wire.Claimed
	delay     int64
	permanent bool
}

func newOffice(tasks ...wire.Task) *office {
	o := &office{lease: 30 * time.Second, types: map[string]string{}, defaults: `{"success":true,"defaults":{}}`, requests: map[string]wire.Answer{}, over: map[string]bool{}, changed: make(chan struct{})}
	for _, t := range tasks {
		o.add(t)
	}
	return o
}

// add submits a task of a type with params.
func (o *office) add(t wire.Task) *officeTask {
	o.mu.Lock()
	defer o.mu.Unlock()
	t.ID, t.Status = uint64(len(o.tasks)+1), "pending"
	if t.TaskType == "" {
		t.TaskType = "mail"
	}
	if t.Params == nil && t.Payload == nil {
		t.Params = json.RawMessage(`{"to":"ada"}`)
	}
	task := &officeTask{Task: t}
	o.tasks = append(o.tasks, task)
	o.wake()
	return task
}

func (o *office) wake() {
	close(o.changed)
	o.changed = make(chan struct{})
}

// task returns a copy of the task.
func (o *office) task(id int) officeTask {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.expire()
	return *o.tasks[id-1]
}

// paths returns the paths of the calls so far, except those in but.
func (o *office) paths(but ...string) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var paths []string
	for _, c := range o.calls {
		if !slices.Contains(but, c.path) {
			paths = append(paths, c.path)
		}
	}
	return paths
}

// sent returns the calls whose path ends with what.
func (o *office) sent(what string) []request {
	o.mu.Lock()
	defer o.mu.Unlock()
	var calls []request
	for _, c := range o.calls {
		if strings.HasSuffix(c.path, what) {
			calls = append(calls, c)
		}
	}
	return calls
}

func (o *office) expire() {
	for _, t := range o.tasks {
		if t.Status == "claimed" && !time.Now().Before(t.leaseEnds) {
			t.end("pending", "expired")
			o.wake()
		}
	}
}

func (t *officeTask) end(status, how string) {
	t.Status, t.settled = status, how
	t.log = append(t.log, how)
	t.ClaimToken, t.LeaseRemainingMS = nil, nil
}

func (o *office) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	req := request{method: r.Method, path: r.URL.RequestURI(), body: string(body)}
	o.mu.Lock()
	o.calls = append(o.calls, req)
	fault := o.fault
	o.mu.Unlock()
	if fault != nil {
		if answer := fault(req, true); answer != nil {
			answer(w, r)
			return
		}
	}
	rec := httptest.NewRecorder()
	o.serve(rec, r, body)
	if fault != nil {
		if answer := fault(req, false); answer != nil {
			answer(w, r)
			return
		}
	}
	w.WriteHeader(rec.Code)
	w.Write(rec.Body.Bytes())
}

func (o *office) serve(w http.ResponseWriter, r *http.Request, body []byte) {
	var id uint64
	var verb string
	switch n, _ := fmt.Sscanf(strings.ReplaceAll(r.URL.Path, "/", " "), " api tasks %d %s", &id, &verb); {
	case strings.HasPrefix(r.URL.Path, typesPath):
		o.mu.Lock()
		more := o.types[r.URL.Path[len(typesPath):]]
		o.mu.Unlock()
		says(200, fmt.Sprintf(`{"success":true,"type":{"task_type":%q%s}}`, r.URL.Path[len(typesPath):], more))(w, r)
	case r.URL.Path == "/api/defaults":
		says(200, o.defaults)(w, r)
	case r.URL.Path == "/api/tasks/claim":
		o.claimNext(w, r, body)
	case r.URL.Path == "/api/batch":
		o.batch(w, r, body)
	case n == 2:
		o.mu.Lock()
		defer o.mu.Unlock()
		answerWith(w, r, func() (any, wire.Code) { return o.settle(id, verb, body) })
	default:
		refuses(wire.CodeNotFound)(w, r)
	}
}

func answerWith(w http.ResponseWriter, r *http.Request, do func() (any, wire.Code)) {
	a, code := do()
	if code != "" {
		refuses(code)(w, r)
		return
	}
	b, err := json.Marshal(a)
	if err != nil {
		panic(err)
	}
	says(200, string(b))(w, r)
}

func (o *office) claimNext(w http.ResponseWriter, r *http.Request, body []byte) {
	var c wire.Claim
	if err := json.Unmarshal(body, &c); err != nil {
		panic(err)
	}
	timer := time.NewTimer(time.Duration(c.WaitMS) * time.Millisecond)
	defer timer.Stop()
	for over := c.WaitMS == 0; ; {
		o.mu.Lock()
		if c.WaitMS == 0 {
			o.over[c.ClaimRequestID] = true
			o.wake()
		}
		over = over || o.over[c.ClaimRequestID]
		tasks, repeated := o.claim(&c, max(c.Limit, 1))
		changed := o.changed
		o.mu.Unlock()
		if len(tasks) > 0 || over {
			answerWith(w, r, func() (any, wire.Code) { return wire.Answer{Success: true, Tasks: tasks, Repeated: repeated}, "" })
			return
		}
		select {
		case <-timer.C:
			over = true
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

// claim claims up to limit tasks. The caller holds the lock.
func (o *office) claim(c *wire.Claim, limit int) (tasks []wire.Task, repeated bool) {
	o.expire()
	if was, ok := o.requests[c.ClaimRequestID]; ok {
		for _, t := range was.Tasks {
			now := o.tasks[t.ID-1]
			t.ClaimState = "ended"
			if now.ClaimToken != nil && *now.ClaimToken == *t.ClaimToken {
				t.ClaimState = "live"
				t.LeaseRemainingMS = new(time.Until(now.leaseEnds).Milliseconds())
			}
			tasks = append(tasks, t)
		}
		return tasks, true
	}
	for _, t := range o.tasks {
		if t.Status != "pending" || len(tasks) == limit || !slices.Contains(c.TaskTypes, t.TaskType) {
			continue
		}
		o.token++
		lease := o.lease
		if c.LeaseMS > 0 {
			lease = time.Duration(c.LeaseMS) * time.Millisecond
		}
		t.Status, t.settled, t.lastToken, t.leaseEnds = "claimed", "", o.token, time.Now().Add(lease)
		t.length = lease
		t.Attempts++
		t.log = append(t.log, "claimed")
		t.ClaimToken, t.WorkerID, t.LeaseRemainingMS = new(o.token), &c.WorkerID, new(lease.Milliseconds())
		tasks = append(tasks, t.Task)
	}
	if len(tasks) > 0 && c.ClaimRequestID != "" {
		o.requests[c.ClaimRequestID] = wire.Answer{Tasks: tasks}
	}
	return tasks, false
}

func (o *office) settle(id uint64, verb string, body []byte) (any, wire.Code) {
	o.expire()
	var s wire.Settle
	if err := json.Unmarshal(body, &s); err != nil {
		panic(err)
	}
	t := o.tasks[id-1]
	claimed := func() *wire.Claimed {
		if t.next == nil && s.Claim != nil {
			t.next = &wire.Claimed{}
			if tasks, _ := o.claim(s.Claim, 1); len(tasks) > 0 {
				t.next.Task = &tasks[0]
			}
		} else if t.next != nil && t.next.Task != nil {
			t.next.Task.ClaimState = "live"
		}
		return t.next
	}
	done := map[string]string{"complete": "completed", "fail": "failed", "release": "released"}
	switch {
	case t.settled != "" && t.settled == done[verb] && t.lastToken == s.ClaimToken:
		return wire.Answer{Success: true, Repeated: true, Task: &t.Task, Claimed: claimed()}, ""
	case t.Status != "claimed" || *t.ClaimToken != s.ClaimToken:
		return nil, wire.CodeStaleClaim
	}
	switch verb {
	case "complete":
		t.end("completed", "completed")
		t.Result, t.ResultPayload = s.Result, s.ResultPayload
		for _, n := range s.Submit {
			t.submitted = append(t.submitted, string(n.Params))
		}
		return wire.Answer{Success: true, Task: &t.Task, Claimed: claimed()}, ""
	case "fail":
		t.end("failed", "failed")
		t.Error, t.permanent, t.delay = s.Error, s.Permanent, -1
		if s.RetryInMS != nil {
			t.delay = *s.RetryInMS
		}
	case "release":
		t.end("released", "released")
		t.Attempts--
		t.delay = s.DelayMS
	case "extend":
		t.leaseEnds = time.Now().Add(t.length)
		if s.Progress != nil {
			t.Progress = s.Progress
		}
		return wire.Answer{Success: true, Task: &t.Task, LeaseRemainingMS: time.Until(t.leaseEnds).Milliseconds(), CancelRequested: t.CancelRequested}, ""
	}
	return wire.Answer{Success: true, Task: &t.Task}, ""
}

// batch performs a batch of releases.
func (o *office) batch(w http.ResponseWriter, r *http.Request, body []byte) {
	var b struct {
		Ops []struct {
			ID uint64 `json:"id"`
			wire.Settle
		} `json:"ops"`
	}
	if err := json.Unmarshal(body, &b); err != nil {
		panic(err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	var results []wire.OpResult
	for _, op := range b.Ops {
		one, _ := json.Marshal(op.Settle)
		a, code := o.settle(op.ID, "release", one)
		if code != "" {
			panic(code)
		}
		results = append(results, wire.OpResult{Answer: a.(wire.Answer)})
	}
	answerWith(w, r, func() (any, wire.Code) { return wire.BatchAnswer{Success: true, Results: results}, "" })
}

// officeTransport is like memoryTransport but ends with the request's context, as a network does: the request may
// still reach the office, and its answer is lost.
type officeTransport struct{ *office }

func (o officeTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	httptrace.ContextClientTrace(r.Context()).GotConn(httptrace.GotConnInfo{}) // so that the client counts it as sent
	type answer struct {
		resp *http.Response
		err  error
	}
	answered := make(chan answer, 1)
	o.underWay.Go(func() {
		resp, err := memoryTransport{o.office}.RoundTrip(r)
		answered <- answer{resp, err}
	})
	select {
	case a := <-answered:
		return a.resp, a.err
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// client returns a client of the office. The caller closes it.
func (o *office) client(t *testing.T) *Client {
	t.Helper()
	c, err := newClient(Config{Endpoints: []string{"http://memory"}}, officeTransport{o}, officeTransport{o})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// running is a worker that runs in a bubble.
type running struct {
	*Worker
	stop func() // ends Run's context
	done chan error
}

// runWorker runs a worker against the office in a bubble, calls test when the worker is idle, then stops the worker,
// waits for it, and checks that it left no goroutines.
func runWorker(t *testing.T, o *office, cfg WorkerConfig, set func(*Worker), test func(*testing.T, *running)) {
	t.Helper()
	runWorkerIn(t, context.Background(), o, cfg, set, test)
}

// runWorkerIn is runWorker with the values of a context for Run.
func runWorkerIn(t *testing.T, values context.Context, o *office, cfg WorkerConfig, set func(*Worker), test func(*testing.T, *running)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o.changed = make(chan struct{}) // the bubble's
		c := o.client(t)
		if cfg.ID == "" {
			cfg.ID = "w1"
		}
		w, err := NewWorker(c, cfg)
		if err != nil {
			t.Fatal(err)
		}
		set(w)
		ctx, stop := context.WithCancel(values)
		r := &running{Worker: w, stop: stop, done: make(chan error, 1)}
		go func() { r.done <- w.Run(ctx) }()
		synctest.Wait()
		test(t, r)
		stop()
		if err, ok := <-r.done; ok && err != nil {
			t.Errorf("Run: %v", err)
		}
		o.underWay.Wait()
		synctest.Wait() // answers under way are about to end
		if stacks := workerStacks(); stacks != "" {
			t.Errorf("goroutines are left:\n%s", stacks)
		}
		c.Close()
	})
}

// wait waits for the end of Run and returns its error.
func (r *running) wait() error {
	err := <-r.done
	close(r.done)
	return err
}

// workerStacks returns the stacks of the worker's goroutines in this bubble.
func workerStacks() string {
	all := make([]byte, 1<<20)
	stacks := strings.Split(string(all[:runtime.Stack(all, true)]), "\n\n") // this goroutine comes first
	bubble := regexp.MustCompile(`synctest bubble \d+\]`).FindString(stacks[0])
	if bubble == "" {
		panic("not in a bubble: " + stacks[0])
	}
	var left []string
	for _, stack := range stacks[1:] {
		if strings.Contains(stack, bubble) && !strings.Contains(stack, "synctest.Run(") && strings.Contains(stack, "claimq/client.") {
			left = append(left, stack)
		}
	}
	return strings.Join(left, "\n\n")
}
