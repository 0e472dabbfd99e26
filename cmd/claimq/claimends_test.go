package main

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/internal/testwait"
)

// When a caller of package client gives up a waiting claim, a task submitted right afterwards goes to the next claim.
// The nodes are real.
func TestClaim_thatIsGivenUpHoldsNothing(t *testing.T) {
	t.Parallel()
	l := newWorkLab(t)
	for round := range 16 {
		taskType := fmt.Sprint("round-", round)
		ctx, giveUp := context.WithCancel(t.Context())
		before, ended := l.c.Stats().Requests, make(chan error, 1)
		go func() {
			_, err := l.c.ClaimMany(ctx, client.ClaimRequest{WorkerID: "gone", Types: []string{taskType}, Wait: testwait.Patience}, 10)
			ended <- err
		}()
		testwait.Until(t, "the claim to be sent", func() bool { return l.c.Stats().Requests > before })
		giveUp()
		if err := <-ended; !errors.Is(err, context.Canceled) || errors.Is(err, client.ErrOutcomeUnknown) {
			t.Errorf("round %d: the claim ended with %v", round, err)
		}
		id := l.submit(t, taskType, `{}`, 1)
		cl, err := l.c.ClaimNext(t.Context(), client.ClaimRequest{WorkerID: "here", Types: []string{taskType}})
		if err != nil || cl.Task.ID != id || cl.Task.Attempts != 1 {
			task, _ := l.c.Get(t.Context(), id)
			t.Fatalf("round %d: got %+v, %v; the task is %+v", round, cl, err, task)
		}
	}
}
