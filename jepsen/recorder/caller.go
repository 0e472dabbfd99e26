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

// DefaultTimeout bounds one call. After it the outcome is unknown.
const DefaultTimeout = 2 * time.Second

// Codes of ops without an answer of the server.
const (
	// CodeNotConnected means that nothing was sent.
	CodeNotConnected = "not_connected"
	// CodeNoAnswer means that the connection broke or that the call took too long.
	CodeNoAnswer = "no_answer"
	// CodeOddAnswer means that the answer is not in the contract.
	CodeOddAnswer = "odd_answer"
)

// Caller is a process of the history: it makes one call after the other, each to its
// current node. It is for one goroutine.
type Caller struct {
	// Timeout bounds each call, in addition to the time that the call asks to wait for a
	// task.
	Timeout time.Duration
	// Key is its API key, initially the recorder's.
	Key string
	// Sent, if not nil, is called when a request has been written.
	Sent func()

	rec     *Recorder
	http    *http.Client
	process int
	nodes   []string // base URLs
	at      int      // index of the current node
}

// Caller returns a new process that begins with the node at index first.
func (r *Recorder) Caller(nodes []string, first int) *Caller {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.callers++
	return &Caller{Timeout: DefaultTimeout, Key: r.Key, rec: r, http: r.http, process: r.callers, nodes: nodes, at: first % len(nodes)}
}

// By makes the caller's requests with rt, which follows no redirect.
func (c *Caller) By(rt http.RoundTripper) { c.http = &http.Client{Transport: rt} }

// seen returns the task in an answer as recorded. A task that waits for its time is pending
// for the checkers, which learn of times elsewhere.
func seen(t *wire.Task) *history.Task {
	s := &history.Task{
		ID: t.ID, Key: t.IdempotencyKey, Status: t.Status, Attempts: t.Attempts, Params: string(t.Params), Result: string(t.Result),
		Type: t.TaskType, Priority: t.Priority, Group: t.Group, ShareKey: t.ShareKey, ParentID: t.ParentID,
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

// value returns the value that p points to, or the zero value if it is nil.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// record records the ops of one call, and switches to another node if it should.
func (c *Caller) record(ops ...history.Op) {
	c.rec.add(ops...)
	if Again(ops[0]) {
		c.at = (c.at + 1) % len(c.nodes)
	}
}

// exchange makes one request without recording it, and returns op with the answer. take
// decodes a success, and reports whether it is complete.
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

// judge returns the outcome that an answer, or none, means.
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
		return history.Unknown, CodeOddAnswer // of a proxy, or of an unknown program
	}
	switch refusal.Code {
	case wire.CodeOutcomeUnknown, wire.CodeInternal:
		return history.Unknown, string(refusal.Code)
	}
	return history.Failed, string(refusal.Code)
}

// Again reports whether a call with this outcome should be repeated at another node: its
// outcome is unknown, or it could not be done now.
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
