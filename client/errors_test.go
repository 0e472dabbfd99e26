package client

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/api/wire"
)

func TestError_isTheSentinelOfItsCode(t *testing.T) {
	t.Parallel()
	sentinels := map[wire.Code]error{
		wire.CodeTaskNotFound: ErrTaskNotFound, wire.CodeTaskAlreadyClaimed: ErrTaskAlreadyClaimed,
		wire.CodeTaskNotClaimed: ErrTaskNotClaimed, wire.CodeTaskNotClaimable: ErrTaskNotClaimable,
		wire.CodeTaskNotTerminal: ErrTaskNotTerminal, wire.CodeTaskCompleted: ErrTaskCompleted,
		wire.CodeTaskFailed: ErrTaskFailed, wire.CodeTaskCancelled: ErrTaskCancelled,
		wire.CodeMaxAttemptsReached: ErrMaxAttemptsReached, wire.CodeInvalidTask: ErrInvalidTask,
		wire.CodeInvalidWorkerID: ErrInvalidWorkerID, wire.CodeWrongWorker: ErrWrongWorker,
		wire.CodeStaleClaim: ErrStaleClaim, wire.CodeStepsUnfinished: ErrStepsUnfinished,
		wire.CodeCountMismatch: ErrCountMismatch, wire.CodeEventsGone: ErrEventsGone, wire.CodePlaceAhead: ErrPlaceAhead,
		wire.CodePayloadTooLarge: ErrTooLarge, wire.CodeNoPendingTasks: ErrNoTasks,
		wire.CodeRateLimited: ErrRateLimited, wire.CodeOverloaded: ErrOverloaded,
		wire.CodeUnauthorized: ErrUnauthorized, wire.CodeForbidden: ErrForbidden,
		wire.CodeOutcomeUnknown: ErrOutcomeUnknown, wire.CodeNoLeader: ErrNoLeader,
	}
	for code, want := range sentinels {
		_, c := talk(t, refuses(code))
		c.timeout = 500 * time.Millisecond // some are repeated first
		_, err := c.Get(t.Context(), "17")
		for range 60 { // on a busy machine the timeout may come in the middle of a try
			if _, told := errors.AsType[*Error](err); told {
				break
			}
			_, err = c.Get(t.Context(), "17")
		}
		for other, s := range sentinels {
			if errors.Is(err, s) != (other == code) {
				t.Errorf("%s: errors.Is(%v, %v) is %v", code, err, s, !(other == code))
			}
		}
		if !errors.Is(err, want) {
			t.Errorf("%s: %v is not %v", code, err, want)
		}
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%s: %v is no *Error", code, err)
			continue
		}
		e.Details = nil
		if diff := cmp.Diff(&Error{Status: code.Status(), Code: string(code), Text: "E", Advice: "M", RequestID: "R"}, e); diff != "" {
			t.Errorf("%s: -want +got\n%s", code, diff)
		}
	}
}

func TestError_withoutASentinel(t *testing.T) {
	t.Parallel()
	_, c := talk(t, refuses(wire.CodeInvalidRequest))
	_, err := c.Get(t.Context(), "17")
	var e *Error
	if !errors.As(err, &e) || e.Code != "invalid_request" || e.Is(nil) {
		t.Errorf("got %v", err)
	}
	if want := `get task 17: E (invalid_request): M`; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	if want := `{"success":false,"error":"E","code":"invalid_request","message":"M","request_id":"R","extra":7}`; string(e.Details) != want {
		t.Errorf("details are %s", e.Details)
	}
}

func TestError_ofAProxy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, c := talkInMemory(t, says(413, "<html>"))
		defer c.Close()
		_, err := c.Get(t.Context(), "17")
		if want := "get task 17: Request Entity Too Large (HTTP status 413), given up after"; err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	})
}
