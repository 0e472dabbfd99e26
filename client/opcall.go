package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client/internal/hotjson"
	"github.com/claimq/claimq/client/internal/hotwire"
	"github.com/claimq/claimq/client/internal/lane"
	"github.com/claimq/claimq/internal/repeat"
)

// fullAnswerMin is how long the answer of a batch is at least in which claims may have
// taken nothing for want of room: the server stops at 8 MiB of tasks, one of which may
// have had no room any more.
const fullAnswerMin = 4 << 20

// opCall is a call that a batch has an op for.
type opCall struct {
	kind   repeat.Op
	id     uint64        // of the task, 0: the call is about none
	body   []byte        // of the call by itself
	weight int           // how much longer than the body the answer is likely to be
	room   *hotwire.Room // for the task that a complete claims; nil: new memory
	lonely bool          // it goes by itself in any case
	until  time.Time     // when it is over, if no context has ended before; zero: as any call
}

// path is that of the call by itself.
func (o *opCall) path() string {
	if o.id == 0 {
		return claimPath // submits have a lane without ops
	}
	return taskPath(o.id, string(o.kind))
}

// item is the call as an op of a batch.
func (o *opCall) item() []byte {
	b := append(make([]byte, 0, len(o.body)+len(`{"op":"complete","id":9007199254740991,`)), `{"op":"`...)
	b = append(b, o.kind...)
	b = append(b, '"')
	if o.id != 0 {
		b = append(b, `,"id":`...)
		b = strconv.AppendUint(b, o.id, 10)
	}
	if len(o.body) > len("{}") {
		b = append(b, ',')
	}
	return append(b, o.body[1:]...)
}

// op makes a call by itself, or with others of its lane.
func (c *Client) op(ctx context.Context, l *lane.Lane[share], o opCall) (wire.Answer, answer, error) {
	if o.lonely || len(o.body) > lane.CallBytesMax {
		return c.opAlone(ctx, &o)
	}
	if l.Alone() {
		defer l.Left()
		return c.opAlone(ctx, &o)
	}
	item := o.item()
	r := &ride{Item: item, Weight: len(item) + o.weight, Until: o.until}
	if o.kind == repeat.OpClaim {
		r.Unread = func() { c.running.Go(func() { c.giveBack(r, o.body) }) }
	}
	shared, err := c.together(ctx, l, r)
	o.until = r.Until
	switch {
	case !shared:
		return c.opAlone(ctx, &o)
	case err != nil:
		return wire.Answer{}, answer{}, err
	}
	a, size := r.Result.ans.answer, len(r.Result.ans.body)
	decoded, err := opAnswer(r.Result.body, o.kind == repeat.OpClaim, o.room)
	r.Result.ans.lent.Read()
	if o.fallsShort(&decoded, err, size) {
		return c.opAlone(ctx, &o)
	}
	c.counts.ended(ctx, 1, err)
	a.body = nil // it may be another's by now
	return decoded, a, err
}

// giveBack releases the tasks that a shared request claimed for a caller which did not wait for
// the answer: nobody else knows of them. claim is the body of the caller's call.
func (c *Client) giveBack(r *ride, claim []byte) {
	if r.Result.err != nil {
		return
	}
	decoded, err := opAnswer(r.Result.body, true, nil)
	r.Result.ans.lent.Read()
	var asked wire.Claim
	if err != nil || json.Unmarshal(claim, &asked) != nil {
		return
	}
	if decoded.Task != nil {
		decoded.Tasks = []wire.Task{*decoded.Task}
	}
	// What cannot be released is another's once its lease ends.
	_ = releaseAll(context.Background(), c.claimsOf(&ClaimRequest{WorkerID: asked.WorkerID}, decoded.Tasks, false, &r.Result.ans.answer))
}

// opAlone makes a call by itself.
func (c *Client) opAlone(ctx context.Context, o *opCall) (wire.Answer, answer, error) {
	ctx, end := until(ctx, o.until)
	defer end()
	return c.post(ctx, o.path(), o.body)
}

// opAnswer reads what the call of an op is answered with, as takeAnswer.
func opAnswer(body []byte, tasks bool, room *hotwire.Room) (wire.Answer, error) {
	if !bytes.HasPrefix(body, refusalFirst) {
		if decoded, ok := hotwire.Answer(body, tasks, room); ok && decoded.Success {
			return decoded, nil
		}
	}
	return wire.Answer{}, opRefusal(body)
}

// refusalFirst is how the server's refusals of an op begin.
var refusalFirst = []byte(`{"success":false`)

// errOpAnswer is returned when what a shared request says of a call cannot be read.
var errOpAnswer = fmt.Errorf("%w: the answer is not claimq's", ErrOutcomeUnknown)

// opRefusal is why an op was refused.
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

// fallsShort reports whether the call by itself may be answered otherwise than as one of
// many: it is refused as malformed, which an op may be for what the ops before it change;
// a claim took nothing in an answer that may have been full; or what it took comes
// without its payload, as the answer was. size is the whole answer's.
func (o *opCall) fallsShort(decoded *wire.Answer, err error, size int) bool {
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
	if claimed := decoded.Claimed; claimed != nil && isBare(claimed.Task) {
		return true
	}
	if o.kind != repeat.OpClaim {
		return false
	}
	for i := range decoded.Tasks {
		if isBare(&decoded.Tasks[i]) {
			return true
		}
	}
	return isBare(decoded.Task)
}

// isBare reports whether a claimed task comes without its payload: each has one.
func isBare(t *wire.Task) bool {
	return t != nil && t.ClaimState != "ended" && len(t.Params) == 0 && len(t.Payload) == 0
}

// traced returns the encoded task with the trace context of ctx, if that has one which the
// server takes.
func traced(ctx context.Context, task []byte) []byte {
	trace, ok := ctx.Value(traceparentKey{}).(string)
	if !ok || !wire.ValidTraceparent([]byte(trace)) {
		return task
	}
	return hotjson.WithField("traceparent", strconv.AppendQuote(nil, trace), task)
}

type traceparentKey struct{}

// WithTraceparent returns a context whose calls carry traceparent, a W3C trace
// context (https://www.w3.org/TR/trace-context/). The tasks that they submit keep
// it, as Task.Traceparent: so what traces the work can go on where its producer
// was. The server ignores one that is malformed.
func WithTraceparent(ctx context.Context, traceparent string) context.Context {
	return context.WithValue(ctx, traceparentKey{}, traceparent)
}
