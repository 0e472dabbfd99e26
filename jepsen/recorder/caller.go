package recorder

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/jepsen/history"
)

// DefaultTimeout bounds one call: after it the outcome is unknown.
const DefaultTimeout = 2 * time.Second

// Codes of ops without an answer of the server.
const (
	// CodeNotConnected is of a call that never left: nothing was sent.
	CodeNotConnected = "not_connected"
	// CodeNoAnswer is of a call whose connection broke or that took too long.
	CodeNoAnswer = "no_answer"
	// CodeOddAnswer is of an answer that is none of the contract's.
	CodeOddAnswer = "odd_answer"
)

// Caller is one process of the history: it makes one call after the other, each
// to the node it has chosen. It is for one goroutine.
type Caller struct {
	// Timeout bounds each call, beside what the call asks to wait for a task.
	Timeout time.Duration
	// Key is its API key, at first the recorder's.
	Key string
	// Sent, if set, is called when a request has been written.
	Sent func()

	rec     *Recorder
	http    *http.Client
	process int
	nodes   []string // base URLs
	at      int      // index of the node it calls
}

// Caller returns a new process that begins with the node at index first of
// nodes.
func (r *Recorder) Caller(nodes []string, first int) *Caller {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.callers++
	return &Caller{Timeout: DefaultTimeout, Key: r.Key, rec: r, http: r.http, process: r.callers, nodes: nodes, at: first % len(nodes)}
}

// By has the caller's requests made by rt, which follows no redirect.
func (c *Caller) By(rt http.RoundTripper) { c.http = &http.Client{Transport: rt} }

// seen is what an answer shows of a task. One that waits for its time is pending
// for the checkers, which know of times otherwise.
func seen(t *wire.Task) *history.Task {
	s := &history.Task{
		ID: t.ID, Key: t.IdempotencyKey, Status: t.Status, Attempts: t.Attempts, Params: string(t.Params), Result: string(t.Result),
		Type: t.TaskType, Priority: t.Priority, Group: t.Group, ParentID: t.ParentID,
		Cancelling: t.CancelRequested, Token: value(t.ClaimToken), Worker: value(t.WorkerID),
	}
	if s.Status == "scheduled" {
		s.Status = "pending"
	}
	for i := range t.Steps {
		s.Steps = append(s.Steps, t.Steps[i].Status)
	}
	return s
}

// value returns what p points to, the zero value if it is nil.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// record records the ops of one call, and goes elsewhere with the next one if
// it should.
func (c *Caller) record(ops ...history.Op) {
	c.rec.add(ops...)
	if Again(ops[0]) {
		c.at = (c.at + 1) % len(c.nodes)
	}
}

// exchange makes one request, does not record it, and returns what was answered. take takes
// a success, and reports whether it has what it must.
func (c *Caller) exchange(ctx context.Context, op history.Op, method, path string, body any, take func(*history.Op, []byte) bool) (history.Op, []byte) {
	op.Process, op.Node = c.process, c.nodes[c.at]
	ctx, cancel := context.WithTimeout(ctx, c.Timeout+time.Duration(op.WaitMS)*time.Millisecond)
	defer cancel()
	if c.Sent != nil {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { c.Sent() }})
	}
	op.Call = c.rec.Now()
	status, index, raw, err := fetch(ctx, c.http, c.Key, method, op.Node+path, op.MinIndex, body)
	op.Return, op.Index = c.rec.Now(), index
	op.Outcome, op.Code = judge(status, raw, err)
	if op.Outcome == history.OK && !take(&op, raw) {
		op.Outcome, op.Code = history.Unknown, CodeOddAnswer
	}
	return op, raw
}

// judge says what an answer, or none, means for the outcome.
func judge(status int, body []byte, err error) (history.Outcome, string) {
	if err != nil {
		var network *net.OpError
		var address *url.Error
		if errors.As(err, &address) && errors.As(err, &network) && network.Op == "dial" {
			return history.Failed, CodeNotConnected
		}
		return history.Unknown, CodeNoAnswer
	}
	if status/100 == 2 {
		return history.OK, ""
	}
	var refusal wire.Refusal
	if json.Unmarshal(body, &refusal) != nil || refusal.Code.Status() != status {
		return history.Unknown, CodeOddAnswer // of a proxy, or of nobody we know
	}
	switch refusal.Code {
	case wire.CodeOutcomeUnknown, wire.CodeInternal:
		return history.Unknown, string(refusal.Code)
	}
	return history.Failed, string(refusal.Code)
}

// Again reports whether a call with this outcome should be repeated, at another node: its
// outcome is not known, or it could not be done now.
func Again(op history.Op) bool {
	if op.Outcome == history.Unknown {
		return true
	}
	switch wire.Code(op.Code) {
	case CodeNotConnected, wire.CodeNoLeader, wire.CodeShuttingDown, wire.CodeOverloaded:
		return true
	}
	return false
}
