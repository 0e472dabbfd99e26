package cli

import (
	"context"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
)

// settleOptions say which claim is meant.
type settleOptions struct {
	session.Flags
	worker string
	token  positive
}

func (o *settleOptions) addFlags(a *term.App, cmd *cobra.Command) {
	session.AddFlags(a, cmd, &o.Flags)
	cmd.Flags().StringVar(&o.worker, "worker", "", "who holds the claim (required; CLAIMQ_WORKER)")
	cmd.Flags().Var(&o.token, "token", "the claim's token (required; CLAIMQ_CLAIM_TOKEN)")
}

// settle makes the call; body is made from what names the claim.
func settle(ctx context.Context, a *term.App, o *settleOptions, arg, verb string, body func(wire.Settle) ([]byte, error)) error {
	id, err := session.ParseID(arg)
	if err != nil {
		return err
	}
	const missing = "--%s is missing: claim has printed it, and so does 'claimq get %d'"
	switch {
	case o.worker == "":
		return term.UsageErrorf(missing, "worker", id)
	case o.token == 0:
		return term.UsageErrorf(missing, "token", id)
	}
	b, err := body(wire.Settle{WorkerID: o.worker, ClaimToken: uint64(o.token)})
	if err != nil {
		return err
	}
	return session.With(a, &o.Flags, func(s session.Talk) error {
		var answer wire.Answer
		r := client.Request{Method: http.MethodPost, Path: session.TaskPath(id, verb), Body: b, Repeatable: true}
		shown, err := s.Call(ctx, r, "Repeat the command: with the same token it is done once.", &answer)
		if err != nil || shown {
			return err
		}
		if _, err := fmt.Fprintln(a.Stdout, settledText(a, id, verb, &answer)); err != nil {
			return err
		}
		return showThen(a, &answer)
	})
}

// showThen prints what a complete did beside.
func showThen(a *term.App, answer *wire.Answer) error {
	for i := range answer.Submitted {
		text := fmt.Sprintf("submitted task %d", answer.Submitted[i].ID)
		if !answer.Submitted[i].Created {
			text = fmt.Sprintf("task %d has that key already", answer.Submitted[i].ID)
		}
		if _, err := fmt.Fprintln(a.Stdout, text); err != nil {
			return err
		}
	}
	switch {
	case answer.Claimed == nil:
		return nil
	case answer.Claimed.Task == nil:
		_, err := fmt.Fprintln(a.Stdout, "nothing to claim next")
		return err
	}
	if _, err := fmt.Fprintln(a.Stdout, "\nclaimed next:"); err != nil {
		return err
	}
	return a.ShowTask(answer.Claimed.Task)
}

func settledText(a *term.App, id uint64, verb string, answer *wire.Answer) string {
	if verb == "extend" {
		text := fmt.Sprintf("task %d: the lease has %s left", id, term.ShowMS(answer.LeaseRemainingMS))
		if answer.CancelRequested {
			text += "; somebody asked for the task to be cancelled"
		}
		return text
	}
	text := fmt.Sprintf("task %d", id)
	if answer.Task != nil {
		text += " is " + term.Printable(answer.Task.Status)
		if answer.Task.Status == "scheduled" && answer.Task.RunAt != nil {
			text += ": it can be claimed at " + a.ShowTime(*answer.Task.RunAt)
		}
		if answer.Task.CancelRequested && answer.Task.Status == "claimed" {
			text += ", and its worker is asked to stop"
		}
		if answer.Task.CancelRequested && answer.Task.Status == "running" {
			text += ": the workers of its claimed steps are asked to stop"
		}
	}
	if answer.Repeated && verb != "retry" { // a scheduled task is such a repeat, too
		text += " (this had been done before)"
	}
	return text
}
