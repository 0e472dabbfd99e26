package cli

import (
	"encoding/json"
	"time"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
)

// NewCancelCommand returns the command `claimq cancel`.
func NewCancelCommand(a *term.App) *cobra.Command {
	return session.Command(a, &cobra.Command{
		Use:   "cancel ID",
		Short: "Cancel a task",
		Long: `Cancel a task. A task that is not claimed ends as cancelled at once. For a claimed
task the worker is asked to stop: it learns this at its next extend, and if it
completes the task nevertheless, the task is completed. A task with steps is
cancelled with all steps that have not ended. You can repeat the command.`,
		Example: "  claimq cancel 17",
	}, func(args []string) (session.Request, error) {
		return session.PostTask(args[0], "cancel", []byte("{}"), "Repeat the command: cancelling twice does no harm.")
	}, settled(a, "cancel"))
}

// NewSignalCommand returns the command `claimq signal`.
func NewSignalCommand(a *term.App) *cobra.Command {
	return session.Command(a, &cobra.Command{
		Use:   "signal ID [JSON]",
		Short: "Hand a task the signal that it waits for",
		Long: `Hand a task that was submitted with --wait-for-signal its signal, any JSON up to
64 KiB, which its worker gets as CLAIMQ_SIGNAL. The first signal counts. You can
repeat the command.`,
		Example: `  claimq signal 17
  claimq signal 17 '{"approved":true,"by":"ann"}'`,
	}, func(args []string) (session.Request, error) {
		body := []byte("{}")
		if len(args) > 1 {
			if !json.Valid([]byte(args[1])) {
				return session.Request{}, term.UsageErrorf("the signal is %q: it must be JSON", args[1])
			}
			body = append(append([]byte(`{"signal":`), args[1]...), '}')
		}
		return session.PostTask(args[0], "signal", body, "Repeat the command: only the first signal counts.")
	}, func(_ []string, answer *wire.Answer) error {
		text := "task %d has its signal"
		switch {
		case answer.SameSignal != nil && !*answer.SameSignal:
			text = "task %d had another signal before, which counts"
		case answer.Repeated:
			text = "task %d had this signal before"
		}
		return a.Sayf(text, answer.Task.ID)
	})
}

type updateOptions struct {
	priority int32
	runAt    string
	delay    time.Duration
	labels   []string
	noLabels bool
	shareKey string
}

// NewUpdateCommand returns the command `claimq update`.
func NewUpdateCommand(a *term.App) *cobra.Command {
	var o updateOptions
	cmd := &cobra.Command{
		Use:   "update ID",
		Short: "Change a task's priority, time, labels or share key",
		Long: `Change a task that is not claimed and has not ended. Fields without a flag stay as
they are. The given labels replace all present labels.`,
		Example: `  claimq update 17 --priority 100
  claimq update 17 --run-at 2026-12-24T18:00:00Z
  claimq update 17 --delay 1d12h
  claimq update 17 --run-at now --label customer=7 --label tier=gold`,
	}
	session.Command(a, cmd, func(args []string) (session.Request, error) {
		id, err := session.ParseID(args[0])
		if err != nil {
			return session.Request{}, err
		}
		fields, err := o.patch(cmd, a.Clock())
		if err != nil {
			return session.Request{}, err
		}
		return session.Patch(session.TaskPath(id, ""), fields, setsAgain)
	}, func(_ []string, answer *wire.Answer) error { return a.ShowTask(answer.Task) })
	f := cmd.Flags()
	f.Int32Var(&o.priority, "priority", 0, "higher is claimed first")
	f.StringVar(&o.runAt, "run-at", "", "time from which it can be claimed, as 2026-01-02T15:04:05Z; now: at once")
	term.DurationVar(f, &o.delay, "delay", 0, "in place of --run-at: time from now, by this machine's clock")
	f.StringArrayVar(&o.labels, "label", nil, "label, as name=value; repeatable; together they replace all labels")
	f.BoolVar(&o.noLabels, "no-labels", false, "remove all labels")
	f.StringVar(&o.shareKey, "share-key", "", "the share of its type's tasks that it belongs to, or none")
	term.OnlyExplicit(cmd)
	return cmd
}

// patch builds the request body. A null clears a field; missing fields do not change.
func (o *updateOptions) patch(cmd *cobra.Command, now time.Time) (map[string]any, error) {
	fields := map[string]any{}
	if cmd.Flags().Changed("priority") {
		fields["priority"] = o.priority
	}
	delayed := cmd.Flags().Changed("delay")
	switch {
	case delayed && o.runAt != "":
		return nil, term.UsageErrorf("--delay and --run-at are both given: give one of them")
	case delayed:
		if _, err := wholeMS("--delay", o.delay); err != nil {
			return nil, err
		}
		fields["run_at"] = now.Add(o.delay).UTC()
	case o.runAt == "now":
		fields["run_at"] = nil
	case o.runAt != "":
		at, err := parseTime("--run-at", o.runAt)
		if err != nil {
			return nil, err
		}
		fields["run_at"] = at
	}
	switch {
	case o.noLabels && len(o.labels) > 0:
		return nil, term.UsageErrorf("--label and --no-labels are both given: give one of them")
	case o.noLabels:
		fields["labels"] = wire.Labels{}
	case len(o.labels) > 0:
		labels, err := parseLabels(o.labels)
		if err != nil {
			return nil, err
		}
		fields["labels"] = labels
	}
	switch o.shareKey {
	case "":
	case "none":
		fields["share_key"] = nil
	default:
		fields["share_key"] = o.shareKey
	}
	if len(fields) == 0 {
		return nil, term.UsageErrorf("say what to change: --priority, --run-at, --delay, --label, --no-labels or --share-key")
	}
	return fields, nil
}
