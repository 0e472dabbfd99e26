package recorder

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
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

// answerBytesMax bounds an answer that is read.
const answerBytesMax = 32 << 20

// Caller is one process of the history: it makes one call after the other, each
// to the node it has chosen. It is for one goroutine.
type Caller struct {
	// Timeout bounds each call, beside what the call asks to wait for a task.
	Timeout time.Duration
	// Sent, if set, is called when a request has been written.
	Sent func()

	rec     *Recorder
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
	return &Caller{Timeout: DefaultTimeout, rec: r, process: r.callers, nodes: nodes, at: first % len(nodes)}
}

// Submit submits one task.
func (c *Caller) Submit(ctx context.Context, task wire.NewTask) history.Op {
	op := submitOf(&task)
	return c.call(ctx, op, http.MethodPost, "/api/tasks", task, func(op *history.Op, a *wire.Answer) bool {
		if a.Task == nil {
			return false
		}
		op.TaskID, op.Created = a.Task.ID, a.Created
		return true
	})
}

// Claim claims the next task. An op that is OK has the task and the token.
func (c *Caller) Claim(ctx context.Context, req wire.Claim) history.Op {
	op := claimOf(&req)
	return c.call(ctx, op, http.MethodPost, "/api/tasks/claim", req, func(op *history.Op, a *wire.Answer) bool {
		if a.Task == nil || a.Task.ClaimToken == nil {
			return false
		}
		op.TaskID, op.Token, op.Seen = a.Task.ID, *a.Task.ClaimToken, seen(a.Task)
		return true
	})
}

// Settle completes, fails, extends or releases the task, by kind.
func (c *Caller) Settle(ctx context.Context, kind history.Kind, taskID uint64, s wire.Settle) history.Op {
	op := history.Op{Kind: kind, TaskID: taskID, Token: s.ClaimToken, Worker: s.WorkerID, Result: string(s.Result), LeaseMS: s.LeaseMS, DelayMS: s.DelayMS}
	path := fmt.Sprintf("/api/tasks/%d/%s", taskID, kind)
	return c.call(ctx, op, http.MethodPost, path, s, func(op *history.Op, a *wire.Answer) bool {
		if a.Task == nil {
			return kind == history.Extend
		}
		op.Seen = seen(a.Task)
		return true
	})
}

// Get reads the task; stale reads what the node has.
func (c *Caller) Get(ctx context.Context, taskID uint64, stale bool) history.Op {
	op := history.Op{Kind: history.Get, TaskID: taskID, Stale: stale}
	path := fmt.Sprintf("/api/tasks/%d", taskID)
	if stale {
		path += "?consistency=stale"
	}
	return c.call(ctx, op, http.MethodGet, path, nil, func(op *history.Op, a *wire.Answer) bool {
		if a.Task == nil {
			return false
		}
		op.Seen = seen(a.Task)
		return true
	})
}

// seen is what an answer shows of a task. One that waits for its time is pending
// for the checkers, which know of times otherwise.
func seen(t *wire.Task) *history.Task {
	s := &history.Task{
		ID: t.ID, Key: t.IdempotencyKey, Status: t.Status, Attempts: t.Attempts, Result: string(t.Result),
		Type: t.TaskType, Priority: t.Priority, Group: t.Group, ParentID: t.ParentID, Step: t.Step, Finalize: t.Finalize,
		Cancelling: t.CancelRequested,
	}
	if s.Status == "scheduled" {
		s.Status = "pending"
	}
	for i := range t.Steps {
		s.Steps = append(s.Steps, t.Steps[i].Status)
	}
	if t.ClaimToken != nil {
		s.Token = *t.ClaimToken
	}
	if t.WorkerID != nil {
		s.Worker = *t.WorkerID
	}
	return s
}

// call makes one request and records it. take fills op from the answer and
// reports whether the answer has what it must.
func (c *Caller) call(ctx context.Context, op history.Op, method, path string, body any, take func(*history.Op, *wire.Answer) bool) history.Op {
	op, answer := c.ask(ctx, op, method, path, body)
	if answer != nil && !take(&op, answer) {
		op.Outcome, op.Code = history.Unknown, CodeOddAnswer
	}
	c.record(op)
	return op
}

// record records the ops of one call, and goes elsewhere with the next one if
// it should.
func (c *Caller) record(ops ...history.Op) {
	c.rec.add(ops...)
	if elsewhere(ops[0]) {
		c.at = (c.at + 1) % len(c.nodes)
	}
}

// ask makes one request and does not record it. The answer is nil unless op is
// OK.
func (c *Caller) ask(ctx context.Context, op history.Op, method, path string, body any) (history.Op, *wire.Answer) {
	op, raw := c.exchange(ctx, op, method, path, body)
	if op.Outcome != history.OK {
		return op, nil
	}
	var a wire.Answer
	if err := json.Unmarshal(raw, &a); err != nil || !a.Success {
		op.Outcome, op.Code = history.Unknown, CodeOddAnswer
		return op, nil
	}
	op.Repeated = a.Repeated
	return op, &a
}

// exchange makes one request, does not record it, and returns what was answered.
func (c *Caller) exchange(ctx context.Context, op history.Op, method, path string, body any) (history.Op, []byte) {
	op.Process, op.Node = c.process, c.nodes[c.at]
	ctx, cancel := context.WithTimeout(ctx, c.Timeout+time.Duration(op.WaitMS)*time.Millisecond)
	defer cancel()
	if c.Sent != nil {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { c.Sent() }})
	}
	op.Call = c.rec.Now()
	status, header, raw, err := c.send(ctx, method, op.Node+path, op.MinIndex, body)
	op.Return = c.rec.Now()
	op.Index, _ = strconv.ParseUint(header.Get("X-Claimq-Index"), 10, 64) // absent: 0
	op.Outcome, op.Code = judge(status, raw, err)
	return op, raw
}

// send sends a request. The transport repeats none that changes anything:
// only what was never written.
func (c *Caller) send(ctx context.Context, method, target string, minIndex uint64, body any) (int, http.Header, []byte, error) {
	var reader io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return 0, nil, nil, err
		}
		reader = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, target, reader)
	if err != nil {
		return 0, nil, nil, err
	}
	if minIndex > 0 {
		req.Header.Set("X-Claimq-Min-Index", strconv.FormatUint(minIndex, 10))
	}
	resp, err := c.rec.http.Do(req)
	if err != nil {
		return 0, nil, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, answerBytesMax))
	return resp.StatusCode, resp.Header, raw, err
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

// elsewhere reports whether the caller should try another node.
func elsewhere(op history.Op) bool {
	if op.Outcome == history.Unknown {
		return true
	}
	switch wire.Code(op.Code) {
	case CodeNotConnected, wire.CodeNoLeader, wire.CodeShuttingDown, wire.CodeOverloaded:
		return true
	}
	return false
}

// Again reports whether a call with this outcome should be repeated: it is not
// known the outcome, or it could not be done now.
func Again(op history.Op) bool { return elsewhere(op) }
