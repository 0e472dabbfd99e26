package main

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/jepsen/workers/diary"
)

// The error's kind and code tell who decided a call.
func TestAnswerOf(t *testing.T) {
	t.Parallel()
	coded, uncoded := &client.Error{Status: 409, Code: "stale_claim"}, &client.Error{Status: 404}
	for _, c := range []struct {
		err  error
		want diary.Answer
	}{
		{nil, diary.OfNode},
		{fmt.Errorf("claim: %w", client.ErrNoTasks), diary.OfNode},
		{fmt.Errorf("complete task 7: %w", coded), diary.OfNode},
		{fmt.Errorf("complete task 7: %w", uncoded), diary.OfOther},
		{fmt.Errorf("%w: %w", client.ErrOutcomeUnknown, uncoded), diary.Open},
		{errors.New("connection refused"), diary.Open},
		{context.Canceled, diary.Open},
	} {
		if got := answerOf(c.err); got != c.want {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
	}
}
