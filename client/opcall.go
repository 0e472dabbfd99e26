package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client/internal/hotjson"
	"github.com/claimq/claimq/client/internal/lane"
	"github.com/claimq/claimq/internal/repeat"
)

// fullAnswerMin is the size from which the answer to a batch may have been too full for a claim's tasks. The server
// stops at 8 MiB of tasks, one of which may have been too large to fit.
const fullAnswerMin = 4 << 20

// opCall is a call that can also be an op of a batch.
type opCall struct {
	kind     repeat.Op
	id       uint64        // of the task; 0: none
	body     []byte        // of the call by itself, but for the claim_request_id if claimAt is not 0
	claimAt  int           // where in body the fields of a claim without a claim_request_id begin; 0: it claims nothing
	weight   int           // how much longer than the body the answer is likely to be
	room     *hotjson.Room // memory for the task that a complete claims; nil: new memory
	unshared bool          // never share a request
	until    time.Time     // the deadline, if no context has an earlier one; zero: as for any call
}

// path is the URL path of the call by itself.
func (o *opCall) path() string {
	if o.id == 0 {
		return claimPath // submits have their own lane, without ops
	}
	return taskPath(o.id, string(o.kind))
}

// item returns the call as an op of a batch, in two parts. The rest is of the body.
func (o *opCall) item() (head, rest []byte) {
	b := append(make([]byte, 0, len(`{"op":"complete","id":9007199254740991,`)), `{"op":"`...)
	b = append(b, o.kind...)
	b = append(b, '"')
	if o.id != 0 {
		b = append(b, `,"id":`...)
		b = strconv.AppendUint(b, o.id, 10)
	}
	if len(o.body) > len("{}") {
		b = append(b, ',')
	}
	return b, o.body[1:]
}

// name gives the claim its claim_request_id and its place among the claims with that id, if it has none yet.
func (o *opCall) name(requestID string, place int) {
	if o.claimAt == 0 {
		return
	}
	b := make([]byte, 0, len(o.body)+len(`"claim_request_id":"","claim_request_place":999,`)+len(requestID))
	b = append(append(append(b, o.body[:o.claimAt]...), `"claim_request_id":"`...), requestID...)
	b = append(b, '"')
	if place > 0 {
		b = strconv.AppendInt(append(b, `,"claim_request_place":`...), int64(place), 10)
	}
	if o.body[o.claimAt] != '}' {
		b = append(b, ',')
	}
	o.body, o.claimAt = append(b, o.body[o.claimAt:]...), 0
}

// op makes a call by itself, or in a request shared with others of its lane.
func (c *Client) op(ctx context.Context, l *lane.Lane[callResult], o opCall) (wire.Answer, answer, error) {
	if o.unshared || len(o.body) > lane.CallBytesMax {
		return c.opAlone(ctx, &o)
	}
	if l.Alone() {
		defer l.Left()
		return c.opAlone(ctx, &o)
	}
	r := l.NewCall()
	r.Head, r.Item = o.item()
	r.Weight, r.Until = len(r.Head)+len(r.Item)+o.weight, o.until
	if o.kind == repeat.OpClaim {
		claim := o.body // o itself would be allocated for every call
		r.Unread = func() { c.running.Go(func() { c.giveBack(r, claim) }) }
	}
	shared, err := c.together(ctx, l, r)
	o.until = r.Until
	switch {
	case !shared:
		o.name(r.Result.requestID, r.Result.place)
		return c.opAlone(ctx, &o)
	case err != nil:
		return wire.Answer{}, answer{}, err
	}
	a, size := r.Result.ans.answer, len(r.Result.ans.body)
	decoded, err := opAnswer(r.Result.body, o.kind == repeat.OpClaim, o.room)
	r.Result.ans.pooled.Done()
	if o.mayDiffer(&decoded, err, size) {
		o.name(r.Result.requestID, r.Result.place) // what the first try claimed is repeated
		return c.opAlone(ctx, &o)
	}
	l.Recycle(r)
	c.counts.ended(ctx, 1, err)
	a.body = nil // the memory may be reused by now
	return decoded, a, err
}

// giveBack releases the tasks that a shared request claimed for a caller that did not wait for the answer, because no
// other code knows of them. claim is the body of the caller's call.
func (c *Client) giveBack(r *pendingCall, claim []byte) {
	if r.Result.err != nil {
		return
	}
	decoded, err := opAnswer(r.Result.body, true, nil)
	r.Result.ans.pooled.Done()
	var asked wire.Claim
	if err != nil || json.Unmarshal(claim, &asked) != nil {
		return
	}
	if decoded.Task != nil {
		decoded.Tasks = []wire.Task{*decoded.Task}
	}
	// If a release fails, the claim ends with its lease.
	_ = releaseAll(context.Background(), c.claimsOf(&ClaimRequest{WorkerID: asked.WorkerID}, decoded.Tasks, false, &r.Result.ans.answer))
}

// opAlone makes a call in its own request.
func (c *Client) opAlone(ctx context.Context, o *opCall) (wire.Answer, answer, error) {
	ctx, end := until(ctx, o.until)
	defer end()
	o.name(rand.Text(), 0)
	return c.post(ctx, o.path(), o.body)
}

// opAnswer decodes the answer to an op's call, like takeAnswer.
func opAnswer(body []byte, tasks bool, room *hotjson.Room) (wire.Answer, error) {
	if !bytes.HasPrefix(body, refusalFirst) {
		if decoded, ok := hotjson.Answer(body, tasks, room); ok && decoded.Success {
			return decoded, nil
		}
	}
	return wire.Answer{}, opRefusal(body)
}

// refusalFirst is the beginning of the server's refusals of an op.
var refusalFirst = []byte(`{"success":false`)

// errOpAnswer is returned when the part of a shared answer for a call cannot be decoded.
var errOpAnswer = fmt.Errorf("%w: the answer is not claimq's", ErrOutcomeUnknown)

// opRefusal returns why an op was refused.
func opRefusal(body []byte) error {
	var head wire.Refusal
	if json.Unmarshal(body, &head) != nil || head.Code.Status() == 0 {
		return errOpAnswer
	}
	return &Error{
		Status: head.Code.Status(), Code: string(head.Code), Text: head.Error, Advice: head.Message, RequestID: head.RequestID,
		Details: bytes.Clone(body),
	}
}

// mayDiffer reports whether the call by itself might be answered differently than in a batch of size bytes of
// answer: it was refused as malformed, which may be due to earlier ops; a claim found nothing in an answer that may
// have been full; or a claimed task comes without its payload for the same reason.
func (o *opCall) mayDiffer(decoded *wire.Answer, err error, size int) bool {
	if err != nil {
		var refusal *Error
		if errors.Is(err, ErrNoTasks) {
			return size >= fullAnswerMin
		}
		return errors.As(err, &refusal) && refusal.Status == http.StatusBadRequest
	}
	if o.kind == repeat.OpClaim && decoded.Task == nil && len(decoded.Tasks) == 0 {
		return size >= fullAnswerMin
	}
	if claimed := decoded.Claimed; claimed != nil && lacksPayload(claimed.Task) {
		return true
	}
	if o.kind != repeat.OpClaim {
		return false
	}
	for i := range decoded.Tasks {
		if lacksPayload(&decoded.Tasks[i]) {
			return true
		}
	}
	return lacksPayload(decoded.Task)
}

// lacksPayload reports whether a claimed task comes without its payload, which every task has.
func lacksPayload(t *wire.Task) bool {
	return t != nil && t.ClaimState != "ended" && len(t.Params) == 0 && len(t.Payload) == 0
}

// traced adds the trace context of ctx, if it has a valid one, to the encoded task.
func traced(ctx context.Context, task []byte) []byte {
	trace, ok := ctx.Value(traceparentKey{}).(string)
	if !ok || !wire.ValidTraceparent([]byte(trace)) {
		return task
	}
	return hotjson.WithField("traceparent", strconv.AppendQuote(nil, trace), task)
}

type traceparentKey struct{}

// WithTraceparent returns a context whose calls carry traceparent, a W3C trace context
// (https://www.w3.org/TR/trace-context/). Tasks submitted with it keep it as Task.Traceparent, so that a trace can
// continue from producer to worker. The server ignores a malformed one.
func WithTraceparent(ctx context.Context, traceparent string) context.Context {
	return context.WithValue(ctx, traceparentKey{}, traceparent)
}
