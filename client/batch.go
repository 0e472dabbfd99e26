package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/claimq/claimq/client/internal/hotjson"
	"github.com/claimq/claimq/internal/repeat"
)

// Op is one operation of Batch and Atomically. It is made by SubmitOp, ClaimOp, RetryOp, CancelOp, DeleteOp or a
// method of Claim, and is used in one call only.
type Op struct {
	kind   repeat.Op
	fields []byte // JSON object: the body of the op's own call, with its id
	err    error  // from making the op

	ownedKey bool          // of a submit: its key is random, so no other task can have it
	request  *ClaimRequest // of a claim
	claim    *Claim        // the claim that the op settles or extends

	requestID string // of the batch, for claims without a RequestID
	place     int    // among the ops of the batch that are sent
}

// OpResult is the outcome of one Op, as its own call would return it.
type OpResult struct {
	// Task is the task after the op; for a submit whose key was taken, the task that has it. It is nil for a claim
	// and a delete.
	Task                       *Task
	Created, Replaced, Differs bool     // of a submit, as in Submitted
	Claims                     []*Claim // of a claim; empty if there was nothing to claim
	CancelRequested            bool     // of an extend or a cancel
	Err                        error
}

// SubmitOp submits a task, with a random idempotency key if it has none.
func SubmitOp(task Task) Op {
	fields, err := task.encode(rand.Text())
	return Op{kind: repeat.OpSubmit, fields: fields, err: err, ownedKey: task.IdempotencyKey == ""}
}

// ClaimOp claims up to limit tasks, 1 to 1,000. It can get tasks that earlier ops of the batch submitted. Wait is
// ignored. In Atomically it is refused if there is nothing to claim.
func ClaimOp(req ClaimRequest, limit int) Op {
	req.Wait = 0
	if err := errors.Join(req.check(), checkLimit(limit)); err != nil {
		return Op{kind: repeat.OpClaim, err: err}
	}
	w := req.wire()
	w.Limit = limit
	fields, err := json.Marshal(w)
	return Op{kind: repeat.OpClaim, fields: fields, err: err, request: &req}
}

// CompleteOp is Complete as an op.
func (cl *Claim) CompleteOp(result []byte, then ...Task) Op {
	fields, err := completion(cl.hold(), result, then)
	return cl.op(repeat.OpComplete, fields, err)
}

// FailOp is Fail as an op.
func (cl *Claim) FailOp(cause error) Op {
	fields, err := failure(cl.hold(), cause)
	return cl.op(repeat.OpFail, fields, err)
}

// ReleaseOp is Release as an op.
func (cl *Claim) ReleaseOp(delay time.Duration) Op {
	fields, err := releasing(cl.hold(), delay)
	return cl.op(repeat.OpRelease, fields, err)
}

// ExtendOp is Extend as an op, without progress.
func (cl *Claim) ExtendOp(d time.Duration) Op {
	if d < 0 {
		return Op{kind: repeat.OpExtend, err: fmt.Errorf("lease is %v, it must not be negative", d)}
	}
	s := cl.hold()
	s.LeaseMS = milliseconds(d)
	fields, err := json.Marshal(s)
	return cl.op(repeat.OpExtend, fields, err)
}

func (cl *Claim) op(kind repeat.Op, fields []byte, err error) Op {
	if err != nil {
		return Op{kind: kind, err: err}
	}
	o := opOf(kind, strconv.FormatUint(cl.taskID, 10), fields)
	o.claim = cl
	return o
}

// RetryOp is Client.RetryAdding as an op.
func RetryOp(taskID string, addAttempts int) Op {
	return opOf(repeat.OpRetry, taskID, fmt.Appendf(nil, `{"add_attempts":%d}`, addAttempts))
}

// CancelOp is Client.Cancel as an op.
func CancelOp(taskID string) Op { return opOf(repeat.OpCancel, taskID, []byte("{}")) }

// DeleteOp is Client.Delete as an op.
func DeleteOp(taskID string) Op { return opOf(repeat.OpDelete, taskID, []byte("{}")) }

// opOf makes an op about a task.
func opOf(kind repeat.Op, taskID string, fields []byte) Op {
	id, err := parseID(taskID)
	if err != nil {
		return Op{kind: kind, err: err}
	}
	return Op{kind: kind, fields: hotjson.WithField("id", strconv.AppendUint(nil, id, 10), fields)}
}

// Batch performs up to 1,000 ops in order, in one request and one entry of the log. Each is done or refused by
// itself, and the results say which. An op that the client can tell is malformed is not sent and does not hold up the
// others. err joins the refusals; if the call itself failed, there are no results.
//
// If the answer is lost, the batch is repeated, unless it contains a retry or a delete. Then the error is
// ErrOutcomeUnknown.
func (c *Client) Batch(ctx context.Context, ops ...Op) ([]OpResult, error) {
	results, _, err := c.batch(ctx, ops, false)
	if err != nil {
		return nil, fmt.Errorf("batch: %w", err)
	}
	var errs []error
	for i := range results {
		if err := results[i].Err; err != nil {
			errs = append(errs, fmt.Errorf("op %d of %d, %s: %w", i+1, len(ops), ops[i].kind, err))
		}
	}
	return results, errors.Join(errs...)
}

// Atomically is like Batch, but performs all ops or, if one is malformed or refused, none. The error then says which
// one. A submit whose key is taken is not refused.
func (c *Client) Atomically(ctx context.Context, ops ...Op) ([]OpResult, error) {
	results, repeats, err := c.batch(ctx, ops, true)
	var refusal *Error
	switch {
	case err == nil:
		return results, nil
	case errors.As(err, &refusal) && repeats.Doubted && !errors.Is(err, ErrOutcomeUnknown):
		// An operation may be refused because an earlier try was done.
		err = fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
	if refusal != nil {
		var details struct {
			FailedOp *int `json:"failed_op"`
		}
		if json.Unmarshal(refusal.Details, &details) == nil && details.FailedOp != nil && *details.FailedOp >= 0 && *details.FailedOp < len(ops) {
			return nil, fmt.Errorf("atomic batch: op %d of %d, %s: %w", *details.FailedOp+1, len(ops), ops[*details.FailedOp].kind, err)
		}
	}
	return nil, fmt.Errorf("atomic batch: %w", err)
}

func (c *Client) batch(ctx context.Context, ops []Op, atomic bool) ([]OpResult, repeat.Call, error) {
	if len(ops) == 0 {
		return nil, repeat.Call{}, nil
	}
	results := make([]OpResult, len(ops))
	for i := range ops {
		if results[i].Err = ops[i].err; ops[i].err != nil && atomic {
			return nil, repeat.Call{}, fmt.Errorf("op %d of %d, %s: %w", i+1, len(ops), ops[i].kind, ops[i].err)
		}
	}
	body, sent, safe := encodeBatch(ops, atomic, rand.Text())
	if len(sent) == 0 {
		return results, repeat.Call{}, nil
	}
	for i := range ops {
		if ops[i].settles() {
			ops[i].claim.beginSettling()
			defer ops[i].claim.endSettling()
		}
	}
	bodies, a, err := c.callMany(ctx, Request{Path: "/api/batch", Body: body, Repeatable: safe, acts: len(sent)})
	if err != nil {
		return nil, a.repeats, err
	}
	for n, i := range sent {
		results[i] = c.opResult(&ops[i], bodies[n], &a)
		if ops[i].cutShort(&results[i], len(a.body), atomic) {
			c.claimAgain(ctx, &ops[i], &results[i])
		}
	}
	return results, a.repeats, nil
}

// encodeBatch returns the request's body, the indexes of the ops in it (those without an error), and whether it may
// be repeated. requestID is for the claims that have no RequestID.
func encodeBatch(ops []Op, atomic bool, requestID string) (body []byte, sent []int, safe bool) {
	safe = true
	body = fmt.Appendf(nil, `{"atomic":%t,`, atomic)
	if slices.ContainsFunc(ops, func(o Op) bool { return o.isUnnamed() }) {
		body = fmt.Appendf(body, `"claim_request_id":%q,`, requestID)
	}
	body = append(body, `"ops":[`...)
	for i := range ops {
		if ops[i].err != nil {
			continue
		}
		if len(sent) > 0 {
			body = append(body, ',')
		}
		ops[i].requestID, ops[i].place = requestID, len(sent)
		sent = append(sent, i)
		body = append(body, hotjson.WithField("op", strconv.AppendQuote(nil, string(ops[i].kind)), ops[i].fields)...)
		safe = safe && ops[i].kind.BatchSafe(true)
	}
	return append(body, "]}"...), sent, safe
}

// cutShort reports whether a claim may have got less than it claimed, because the answer had no room: no tasks, or
// tasks without their payloads, in an answer of this size. An atomic batch refuses a claim that finds nothing.
func (o *Op) cutShort(r *OpResult, size int, atomic bool) bool {
	if o.request == nil || r.Err != nil || size < fullAnswerMin {
		return false
	}
	return len(r.Claims) == 0 && !atomic || slices.ContainsFunc(r.Claims, func(cl *Claim) bool { return len(cl.Task.Payload) == 0 })
}

// claimAgain makes a claim of a batch by itself. Because it has the same request id and place, it gets the tasks that
// it claimed before, if any.
func (c *Client) claimAgain(ctx context.Context, o *Op, r *OpResult) {
	body := o.fields
	if o.isUnnamed() {
		body = hotjson.WithField("claim_request_place", strconv.AppendInt(nil, int64(o.place), 10), body)
		body = hotjson.WithField("claim_request_id", strconv.AppendQuote(nil, o.requestID), body)
	}
	decoded, a, err := c.post(ctx, claimPath, body)
	switch {
	case err == nil:
		r.Claims = c.claimsOf(o.request, decoded.Tasks, decoded.Repeated, &a)
	case !errors.Is(err, ErrNoTasks):
		r.Err = fmt.Errorf("the batch's answer had no room for what it claimed: %w", err)
	}
}

// isUnnamed reports whether the op is a claim without a RequestID, which is known by the batch's and by its place.
func (o *Op) isUnnamed() bool { return o.request != nil && o.request.RequestID == "" }

// settles reports whether the op ends its claim.
func (o *Op) settles() bool { return o.claim != nil && o.kind != repeat.OpExtend }

// opResult converts the server's result of an op. a is the call that it came with.
func (c *Client) opResult(o *Op, body []byte, a *answer) OpResult {
	w, err := opAnswer(body, true, nil)
	if err != nil {
		if o.kind == repeat.OpClaim && errors.Is(err, ErrNoTasks) {
			err = nil
		}
		return OpResult{Err: err}
	}
	r := OpResult{Created: w.Created || o.kind == repeat.OpSubmit && o.ownedKey, Replaced: w.Replaced, Differs: differs(w.SameRequest), CancelRequested: w.CancelRequested}
	if w.Task != nil {
		r.Task = fromWire(w.Task)
		r.CancelRequested = r.CancelRequested || w.Task.CancelRequested
	}
	switch {
	case o.request != nil:
		r.Claims = c.claimsOf(o.request, w.Tasks, w.Repeated, a)
	case o.settles():
		o.claim.settledHere()
	case o.claim != nil:
		o.claim.extended(&w, a, false)
	}
	return r
}
