package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client/internal/hotjson"
	"github.com/claimq/claimq/client/internal/hotwire"
	"github.com/claimq/claimq/client/internal/lane"
)

// lanes are where calls wait that are made together, by kind: of one request all are
// refused if the key may not do one, and only settles and extends are not counted for
// its rate. Extends have a lane of their own, so that no lease waits behind completes.
type lanes struct{ submits, claims, settles, extends *lane.Lane[share] }

type ride = lane.Call[share]

// share is what a shared request says of one of its calls.
type share struct {
	// alone says that nothing was done for the call, or nothing that it would not be
	// answered with again, and that it has to be made by itself.
	alone bool
	err   error
	body  []byte // what the call's own answer would be; of a submit, its element of the answer
	ans   answer // of the request
}

func (c *Client) newLanes() lanes {
	return lanes{
		submits: lane.New(c.sendSubmits, c.running.Go), claims: lane.New(c.sendClaims, c.running.Go),
		settles: lane.New(c.sendHolds, c.running.Go), extends: lane.New(c.sendHolds, c.running.Go),
	}
}

// close lets no shared request begin any more. The calls that wait for one end with their
// contexts, and know that nothing was sent.
func (l lanes) close() {
	for _, each := range []*lane.Lane[share]{l.submits, l.claims, l.settles, l.extends} {
		each.Close()
	}
}

func (c *Client) sendSubmits(ctx context.Context, rides []*ride) (tooMuch bool) {
	return c.sendTogether(ctx, "/api/tasks", `{"tasks":[`, rides)
}

func (c *Client) sendClaims(ctx context.Context, rides []*ride) (tooMuch bool) {
	return c.sendTogether(ctx, "/api/batch", `{"ops":[`, rides)
}

// sendHolds sends settles or extends. Their callers know their tasks, so the answer does
// without them, but with a server that does not know how.
func (c *Client) sendHolds(ctx context.Context, rides []*ride) (tooMuch bool) {
	if !c.wholeAnswers.Load() {
		tooMuch = c.sendTogether(ctx, "/api/batch", `{"return":"minimal","ops":[`, rides)
		if !tooMuch || fieldOf(rides[0].Result.err) != "return" {
			return tooMuch
		}
		c.wholeAnswers.Store(true)
	}
	return c.sendTogether(ctx, "/api/batch", `{"ops":[`, rides)
}

// fieldOf returns the field that a refusal is about.
func fieldOf(err error) string {
	var refusal *Error
	var details struct {
		Field string `json:"field"`
	}
	if errors.As(err, &refusal) && json.Unmarshal(refusal.Details, &details) == nil {
		return details.Field
	}
	return ""
}

// sendTogether makes a shared request: open and the items, with commas between them. Each
// item has what the server recognizes its repeat by, so the request is repeated as it is.
// refused says that it was refused for what its calls are.
func (c *Client) sendTogether(ctx context.Context, path, open string, rides []*ride) (refused bool) {
	n := len(open) + len("]}")
	for _, r := range rides {
		n += len(r.Item) + 1
	}
	body := append(make([]byte, 0, n), open...)
	for i, r := range rides {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, r.Item...)
	}
	results, a, err := c.callMany(ctx, Request{Path: path, Body: append(body, "]}"...), Repeatable: true, acts: len(rides), isShared: true})
	refused = refusedWhole(err)
	for i, r := range rides {
		if err != nil {
			r.Result = share{alone: refused, err: ofEach(err)}
			continue
		}
		r.Result = share{body: results[i], ans: a}
	}
	return refused
}

// callMany makes a call about many things, by POST, and returns what the answer has for each, as
// it stands there.
func (c *Client) callMany(ctx context.Context, r Request) (results [][]byte, a answer, err error) {
	r.Method = http.MethodPost
	r.take = func(body []byte) (ok bool) {
		results, ok = hotjson.Results(body, r.acts)
		return ok
	}
	a, err = c.call(ctx, r)
	return results, a, err
}

// refusedWhole reports whether a shared request was refused for what one of its calls
// is: nothing was done, and each is refused, or not, by itself.
func refusedWhole(err error) bool {
	var refusal *Error
	return errors.As(err, &refusal) && !errors.Is(err, ErrOutcomeUnknown) && refusal.Status >= 400 && refusal.Status < 500 &&
		refusal.Status != http.StatusUnauthorized && refusal.Status != http.StatusTooManyRequests
}

// ofEach returns the error for one of several callers, none of whom shares what it may
// change.
func ofEach(err error) error {
	if refusal, ok := err.(*Error); ok { //nolint:errorlint // one that is wrapped is not the caller's
		own := *refusal
		return &own
	}
	return err
}

// together makes a call in a shared request, or by alone if it has to be made by itself.
// take reads what the request says of the call: ok is false if the call has to be made by
// itself all the same, else err is the call's. Its time is what bound says, or ends at r.Until,
// without a context for it: that would be a tenth of what a shared call costs.
func (c *Client) together(ctx context.Context, l *lane.Lane[share], r *ride, take func(share) (ok bool, err error), alone func(context.Context) error) error {
	if err := c.begin(); err != nil {
		return err
	}
	defer c.running.Done()
	if _, bounded := ctx.Deadline(); !bounded && r.Until.IsZero() {
		r.Until = time.Now().Add(c.timeout)
	}
	switch err := l.Share(ctx, r); {
	case errors.Is(err, lane.ErrClosed):
		return ErrClosed
	case errors.Is(err, lane.ErrQueued):
		return overOrEnded(ctx)
	case errors.Is(err, lane.ErrSent):
		err = fmt.Errorf("%w: %w", ErrOutcomeUnknown, overOrEnded(ctx))
		c.counts.ended(ctx, 1, err)
		return err
	case r.Result.alone:
		return untilThen(ctx, r.Until, alone)
	case r.Result.err != nil:
		c.counts.ended(ctx, 1, r.Result.err)
		return r.Result.err
	}
	ok, err := take(r.Result)
	if !ok {
		return untilThen(ctx, r.Until, alone)
	}
	c.counts.ended(ctx, 1, err)
	return err
}

// overOrEnded returns why a call was not waited for: ctx has ended, or its time is over.
func overOrEnded(ctx context.Context) error {
	if ctx.Err() != nil {
		return ended(ctx)
	}
	return context.DeadlineExceeded
}

// untilThen makes a call that ends at that time, if it is not zero.
func untilThen(ctx context.Context, until time.Time, call func(context.Context) error) error {
	if until.IsZero() {
		return call(ctx)
	}
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	return call(ctx)
}

// submitOne submits a task, by itself or with others, and returns the outcome. body
// is the task with its idempotency key.
func (c *Client) submitOne(ctx context.Context, body []byte) (result wire.SubmitResult, err error) {
	alone := func(ctx context.Context) error {
		answer, _, err := c.post(ctx, "/api/tasks", body)
		if err == nil && answer.Task == nil {
			err = errors.New("the answer has no task")
		}
		if err == nil {
			result = resultOfOne(&answer)
		}
		return err
	}
	if len(body) > lane.CallBytesMax {
		return result, alone(ctx)
	}
	l := c.lanes.submits
	if l.Alone() {
		defer l.Left()
		return result, alone(ctx)
	}
	body = traced(ctx, body) // alone, a header has it
	r := &ride{Item: body, Weight: len(body)}
	take := func(r share) (ok bool, err error) {
		result, err = submitResultOf(&r)
		return true, err
	}
	err = c.together(ctx, l, r, take, alone)
	return result, err
}

// submitResultOf reads the element that an answer to a submit of many has for a task.
func submitResultOf(r *share) (wire.SubmitResult, error) {
	result, ok := hotwire.SubmitResult(r.body)
	if !ok || result.ID == 0 && result.Code.Status() == 0 {
		return result, errOpAnswer
	}
	if result.Code == "" {
		return result, nil
	}
	return result, submitRefusal(result, r.body, r.ans.requestID)
}

// submitRefusal is why one of many tasks was refused: element is what the answer has for
// it. Its caller knows nothing of its place in the request, so that is cut out.
func submitRefusal(result wire.SubmitResult, element []byte, requestID string) *Error {
	details := bytes.Clone(element)
	if place := placeOf(result.Field); place != "" {
		result.Error = strings.ReplaceAll(result.Error, place, "")
		details = bytes.ReplaceAll(details, []byte(place), nil)
	}
	return &Error{
		Status: result.Code.Status(), Code: string(result.Code), Text: result.Error, Advice: result.Message, RequestID: requestID, Details: details,
	}
}

// placeOf returns the beginning of a field's path that says which task of many it is
// of, as "tasks[17].", "" if it does not say.
func placeOf(field string) string {
	number, _, ok := strings.Cut(strings.TrimPrefix(field, "tasks["), "].")
	if _, err := strconv.Atoi(number); !ok || err != nil {
		return ""
	}
	return "tasks[" + number + "]."
}
