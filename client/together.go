package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client/internal/hotjson"
	"github.com/claimq/claimq/client/internal/lane"
)

// lanes are the queues of calls that share requests, one per kind. Kinds are not mixed because a request is refused
// as a whole if the key may not make one of its calls, and because settles and extends do not count for the key's
// rate. Extends have their own lane so that no lease waits behind completes.
type lanes struct{ submits, claims, settles, extends *lane.Lane[callResult] }

type pendingCall = lane.Call[callResult]

// callResult is the part of a shared request's answer that belongs to one call.
type callResult struct {
	// alone says that the call must be made by itself. Nothing was done for it, or only something that the call will
	// be answered with again.
	alone bool
	err   error
	body  []byte // the answer that the call by itself would get; for a submit, its element of the answer
	ans   *sharedAnswer
	// requestID is the claim_request_id that the request's claims shared; place is the call's claim_request_place.
	requestID string
	place     int
}

// sharedAnswer is the answer to a shared request. pooled is its body.
type sharedAnswer struct {
	answer
	pooled *lane.Pooled
}

func (c *Client) newLanes() lanes {
	return lanes{
		submits: lane.New(c.sendSubmits, c.running.Go), claims: lane.New(c.sendClaims, c.running.Go),
		settles: lane.New(c.sendSettles, c.running.Go), extends: lane.New(c.sendExtends, c.running.Go),
	}
}

// close prevents further shared requests. Calls that wait for one end with their contexts, knowing that nothing was
// sent.
func (l lanes) close() {
	for _, each := range []*lane.Lane[callResult]{l.submits, l.claims, l.settles, l.extends} {
		each.Close()
	}
}

func (c *Client) sendSubmits(ctx context.Context, calls []*pendingCall) (tooMuch bool) {
	return c.sendTogether(ctx, "/api/tasks", `{"tasks":[`, "", calls)
}

func (c *Client) sendClaims(ctx context.Context, calls []*pendingCall) (tooMuch bool) {
	id := rand.Text()
	return c.sendTogether(ctx, "/api/batch", `{"claim_request_id":"`+id+`","ops":[`, id, calls)
}

// sendSettles, as sendExtends, asks for an answer without the tasks, because the callers know them.
func (c *Client) sendSettles(ctx context.Context, calls []*pendingCall) (tooMuch bool) {
	if !slices.ContainsFunc(calls, func(r *pendingCall) bool { return hotjson.HasClaim(r.Item) }) {
		return c.sendExtends(ctx, calls)
	}
	id := rand.Text()
	return c.sendTogether(ctx, "/api/batch", `{"return":"minimal","claim_request_id":"`+id+`","ops":[`, id, calls)
}

func (c *Client) sendExtends(ctx context.Context, calls []*pendingCall) (tooMuch bool) {
	return c.sendTogether(ctx, "/api/batch", `{"return":"minimal","ops":[`, "", calls)
}

// sendTogether makes a shared request that begins with open, followed by the items, separated by commas. requestID is
// its claim_request_id, "" if it has none. It is repeated unchanged, because the server recognizes a repeat of each
// item. refused says that it was refused because of its calls.
func (c *Client) sendTogether(ctx context.Context, path, open, requestID string, calls []*pendingCall) (refused bool) {
	body := &lane.Joined{Open: open, Items: make([][2][]byte, len(calls))}
	for i, r := range calls {
		body.Items[i] = [2][]byte{r.Head, r.Item}
	}
	results, a, err := c.callMany(ctx, Request{Path: path, joined: body, Repeatable: true, acts: len(calls)})
	refused = refusedForOne(err)
	ans := &sharedAnswer{a, lane.NewPooled(a.body, len(calls))}
	for i, r := range calls {
		r.Result = callResult{requestID: requestID, place: i}
		if err != nil {
			r.Result.alone, r.Result.err = refused, errorForCaller(err)
			continue
		}
		r.Result.body, r.Result.ans = results[i], ans
	}
	return refused
}

// callMany makes a POST for several operations, and returns the raw results of each.
func (c *Client) callMany(ctx context.Context, r Request) (results [][]byte, a answer, err error) {
	r.Method = http.MethodPost
	r.take = func(body []byte) (ok bool) {
		results, ok = hotjson.Results(body, r.acts)
		return ok
	}
	a, err = c.call(ctx, r)
	return results, a, err
}

// refusedForOne reports whether a shared request was refused because of one of its calls. Nothing was done then, and
// each call can be tried by itself.
func refusedForOne(err error) bool {
	var refusal *Error
	return errors.As(err, &refusal) && refusal.Code != "" && !errors.Is(err, ErrOutcomeUnknown) && refusal.Status >= 400 && refusal.Status < 500 &&
		refusal.Status != http.StatusUnauthorized && refusal.Status != http.StatusTooManyRequests
}

// errorForCaller returns the error for one of several callers. Each gets its own copy of an *Error, because a caller
// may change it.
func errorForCaller(err error) error {
	if refusal, ok := err.(*Error); ok { //nolint:errorlint // one that is wrapped is not the caller's
		own := *refusal
		return &own
	}
	return err
}

// together makes a call in a shared request. shared is false if the call has to be made by itself, and nothing was
// done for it. Otherwise the outcome is err or r.Result. The call's time is bounded as by bound, or by r.Until, which
// together sets instead of making a context, because a context would be a tenth of the cost of a shared call.
func (c *Client) together(ctx context.Context, l *lane.Lane[callResult], r *pendingCall) (shared bool, err error) {
	if err := c.begin(); err != nil {
		return true, err
	}
	defer c.running.Done()
	if _, bounded := ctx.Deadline(); !bounded && r.Until.IsZero() {
		r.Until = time.Now().Add(c.timeout)
	}
	switch err := l.Share(ctx, r); {
	case err == nil:
	case errors.Is(err, lane.ErrClosed):
		return true, ErrClosed
	case errors.Is(err, lane.ErrQueued):
		return true, whyLeft(ctx)
	default: // lane.ErrSent
		err = fmt.Errorf("%w: %w", ErrOutcomeUnknown, whyLeft(ctx))
		c.counts.ended(ctx, 1, err)
		return true, err
	}
	if r.Result.alone {
		return false, nil
	}
	if err := r.Result.err; err != nil {
		c.counts.ended(ctx, 1, err)
		return true, err
	}
	return true, nil
}

// whyLeft returns why a call was not waited for: ctx has ended, or its time is over.
func whyLeft(ctx context.Context) error {
	if ctx.Err() != nil {
		return ended(ctx)
	}
	return context.DeadlineExceeded
}

// until returns a context that ends at t, unless t is zero.
func until(ctx context.Context, t time.Time) (context.Context, context.CancelFunc) {
	if t.IsZero() {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, t)
}

// submitOne submits a task, by itself or with others. body is the task with its idempotency key.
func (c *Client) submitOne(ctx context.Context, body []byte) (wire.SubmitResult, error) {
	if len(body) > lane.CallBytesMax {
		return c.submitAlone(ctx, body, time.Time{})
	}
	l := c.lanes.submits
	if l.Alone() {
		defer l.Left()
		return c.submitAlone(ctx, body, time.Time{})
	}
	item := traced(ctx, body) // a call by itself has it in a header
	r := l.NewCall()
	r.Item, r.Weight = item, len(item)
	shared, err := c.together(ctx, l, r)
	switch {
	case !shared:
		return c.submitAlone(ctx, item, r.Until)
	case err != nil:
		return wire.SubmitResult{}, err
	}
	result, err := submitResultOf(r.Result.body, r.Result.ans.requestID)
	r.Result.ans.pooled.Done()
	l.Recycle(r)
	c.counts.ended(ctx, 1, err)
	return result, err
}

// submitAlone submits a task in its own request, bounded by then unless that is zero.
func (c *Client) submitAlone(ctx context.Context, body []byte, then time.Time) (wire.SubmitResult, error) {
	ctx, end := until(ctx, then)
	defer end()
	decoded, _, err := c.post(ctx, "/api/tasks", body)
	if err != nil {
		return wire.SubmitResult{}, err
	}
	if decoded.Task == nil {
		return wire.SubmitResult{}, errors.New("the answer has no task")
	}
	return resultOfOne(&decoded), nil
}

// submitResultOf decodes a task's element of the answer to a submit of many, and does not retain it. requestID is the
// answer's.
func submitResultOf(element []byte, requestID string) (wire.SubmitResult, error) {
	result, ok := hotjson.SubmitResult(element)
	if !ok || result.ID == 0 && result.Code.Status() == 0 {
		return result, errOpAnswer
	}
	if result.Code == "" {
		return result, nil
	}
	return result, submitRefusal(result, element, requestID)
}

// submitRefusal returns why one of many tasks was refused. element is its part of the answer. Its index in the
// request is removed from it, because the caller does not know the request.
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

// placeOf returns the beginning of a field's path that says which task of many it belongs to, such as "tasks[17].",
// or "".
func placeOf(field string) string {
	number, _, ok := strings.Cut(strings.TrimPrefix(field, "tasks["), "].")
	if _, err := strconv.Atoi(number); !ok || err != nil {
		return ""
	}
	return "tasks[" + number + "]."
}
