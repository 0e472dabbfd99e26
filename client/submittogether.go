package client

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client/internal/hotwire"
	"github.com/claimq/claimq/client/internal/lane"
)

// submitOne submits a task, by itself or with others, and returns what became of it. body
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
	_, traced := ctx.Value(traceparentKey{}).(string) // a header of the request has it
	if traced || len(body) > lane.CallBytesMax {
		return result, alone(ctx)
	}
	l := c.lanes.submits
	if l.Alone() {
		defer l.Left()
		return result, alone(ctx)
	}
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
