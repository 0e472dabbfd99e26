package main

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/internal/testwait"
)

// The Go client meets every script as the clients in other languages do.
func TestScripts(t *testing.T) {
	t.Parallel()
	scripts, err := readScripts()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range scripts {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			until := time.Now().Add(testwait.Patience)
			got, err := play(t, s)
			// On a busy machine the time of a call may be over before its last request is answered.
			for got == unknown && s.Outcome != unknown && time.Now().Before(until) {
				got, err = play(t, s)
			}
			if got != s.Outcome || err != nil {
				t.Errorf("outcome %s, want %s: %v", got, s.Outcome, err)
			}
		})
	}
}

// unknown is the outcome of a call that may have been done.
const unknown = "outcome_unknown"

// play returns the outcome of the script's last call. err is nil if the requests were those of the script.
func play(t *testing.T, s script) (outcome string, err error) {
	t.Helper()
	c, err := start(s)
	if err != nil {
		t.Fatal(err)
	}
	p := c.plan()
	cl, err := client.New(client.Config{Endpoints: p.Endpoints, APIKey: "k"})
	if err != nil {
		t.Fatal(err)
	}
	for range p.Calls {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(p.TimeoutMS)*time.Millisecond)
		err = call(ctx, cl, p.Call)
		cancel()
	}
	outcome = outcomeOf(err)
	if outcome == p.Outcome {
		err = nil
	}
	return outcome, errors.Join(err, cl.Close(), c.stop())
}

func call(ctx context.Context, c *client.Client, name string) error {
	var err error
	switch name {
	case "submit":
		_, err = c.Submit(ctx, client.Task{TaskType: "mail", Payload: []byte(`{"to":"ada"}`)})
	case "get":
		_, err = c.Get(ctx, "1")
	case "retry":
		err = c.Retry(ctx, "1")
	case "delete":
		err = c.Delete(ctx, "1")
	case "claim":
		_, err = c.Batch(ctx, client.ClaimOp(client.ClaimRequest{WorkerID: "w"}, 1))
	default:
		err = fmt.Errorf("unknown call %q", name)
	}
	return err
}

// outcomeOf names how a call ended, as the scripts do.
func outcomeOf(err error) string {
	for name, kind := range map[string]error{
		"invalid": client.ErrInvalidTask, "not_found": client.ErrTaskNotFound, "not_available": client.ErrNoLeader,
	} {
		if errors.Is(err, kind) {
			return name
		}
	}
	switch {
	case err == nil:
		return "done"
	case errors.Is(err, client.ErrOutcomeUnknown): // which may be of a key that is not known, too
		return unknown
	case errors.Is(err, client.ErrUnauthorized):
		return "not_authorized"
	}
	return err.Error()
}
