package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
)

// settleCommand makes cmd settle or extend the claim that its flags name. body builds the request body from the
// arguments and that claim.
func settleCommand(a *term.App, cmd *cobra.Command, verb string, body func(args []string, s wire.Settle) (any, error)) *cobra.Command {
	var hold holdFlags
	session.Command(a, cmd, func(args []string) (session.Request, error) {
		b, err := body(args, hold.settle())
		if err != nil {
			return session.Request{}, err
		}
		id, _, err := hold.of(args[0])
		if err != nil {
			return session.Request{}, err
		}
		return session.Post(session.TaskPath(id, verb), b, "Repeat the command: with the same token it is done once.")
	}, settled(a, verb))
	hold.add(cmd.Flags())
	return cmd
}

// holdFlags holds the flags that name a claim.
type holdFlags struct {
	worker string
	token  positive
}

func (o *holdFlags) add(f *pflag.FlagSet) {
	f.StringVar(&o.worker, "worker", "", "who holds the claim (required; CLAIMQ_WORKER)")
	f.Var(&o.token, "token", "the claim's token (required; CLAIMQ_CLAIM_TOKEN)")
}

// settle returns the body of a call that only names the claim.
func (o *holdFlags) settle() wire.Settle {
	return wire.Settle{WorkerID: o.worker, ClaimToken: uint64(o.token)}
}

// of returns the id of the claimed task in arg, and settle. It refuses a claim that is not named.
func (o *holdFlags) of(arg string) (id uint64, s wire.Settle, err error) {
	id, err = session.ParseID(arg)
	const missing = "--%s is missing: claim has printed it, and so does 'claimq get %d'"
	switch {
	case err != nil:
	case o.worker == "":
		err = term.UsageErrorf(missing, "worker", id)
	case o.token == 0:
		err = term.UsageErrorf(missing, "token", id)
	}
	return id, o.settle(), err
}

// settled shows the effect of verb on the task of the first argument, and its further effects.
func settled(a *term.App, verb string) func(args []string, answer *wire.Answer) error {
	return func(args []string, answer *wire.Answer) error {
		id, err := session.ParseID(args[0])
		if err != nil {
			return err
		}
		if err := a.Sayf("%s", settledText(a, id, verb, answer)); err != nil {
			return err
		}
		return showEffects(a, answer)
	}
}

// showEffects prints the further effects of a complete, such as submitted tasks.
func showEffects(a *term.App, answer *wire.Answer) error {
	for i := range answer.Submitted {
		text := fmt.Sprintf("submitted task %d", answer.Submitted[i].ID)
		switch s := &answer.Submitted[i]; {
		case s.Replaced:
			text = fmt.Sprintf("task %d had that key, and has these params now", s.ID)
		case !s.Created:
			text = fmt.Sprintf("task %d has that key already", s.ID)
		}
		if err := a.Sayf("%s", text); err != nil {
			return err
		}
	}
	switch {
	case answer.Claimed == nil:
		return nil
	case answer.Claimed.Task == nil:
		return a.Sayf("nothing to claim next")
	}
	if err := a.Sayf("\nclaimed next:"); err != nil {
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
	if answer.Repeated && verb != "retry" { // retrying a scheduled task counts as a repeat too
		text += " (this had been done before)"
	}
	return text
}
