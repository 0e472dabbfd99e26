package cli

import (
	"bytes"
	"crypto/rand"
	"time"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/cmd/claimq/term"
)

type completeOptions struct {
	submit []string
	claim  bool
	late   bool
	types  []string
	lease  time.Duration
}

// NewCompleteCommand returns the command `claimq complete`.
func NewCompleteCommand(a *term.App) *cobra.Command {
	var o completeOptions
	cmd := &cobra.Command{
		Use:   "complete ID [RESULT | @FILE | -]",
		Short: "Complete a claimed task",
		Long: `Complete a claimed task.

RESULT is JSON and is stored byte for byte. @FILE reads it from a file, - from
standard input. You can repeat the command with the same token.

In the same step, --submit submits follow-up tasks. Each is an object with the fields
of POST /api/tasks, or an array of such objects. --claim claims the worker's next
task, of any type or of those given by --type. The exit code is 0 even if there is no
next task.`,
		Example: `  claimq complete 17 --worker w1 --token 5 '{"sent":true}'
  claimq complete 17 --worker w1 --token 5 @result.json
  claimq complete 17 --worker w1 --token 5 --submit '{"task_type":"invoice","params":{"order":17}}'
  claimq complete 17 --worker w1 --token 5 --claim --type mail`,
	}
	settleCommand(a, cmd, "complete", func(args []string, s wire.Settle) (body any, err error) {
		var result []byte
		if len(args) > 1 {
			if result, err = jsonArgument(a, "RESULT", args[1]); err != nil {
				return nil, err
			}
		}
		submit, err := followUps(a, o.submit)
		if err != nil {
			return nil, err
		}
		if s.Claim, err = o.next(s.WorkerID); err != nil {
			return nil, err
		}
		s.Late = o.late
		text, err := withRaw("submit", submit, s)
		return withField("result", result, text), err
	})
	f := cmd.Flags()
	f.StringArrayVar(&o.submit, "submit", nil, "follow-up task, or an array of them, as JSON, @FILE or -; repeatable")
	f.BoolVar(&o.late, "late", false, "also if the claim is over by its lease or a fail, and the task still waits")
	f.BoolVar(&o.claim, "claim", false, "claim the next task")
	f.StringSliceVar(&o.types, "type", nil, "of --claim: task type to take; repeatable; none: any")
	term.DurationVar(f, &o.lease, "lease", 0, "of --claim: how long the claim lasts; 0: as in claim")
	return cmd
}

// next returns the claim of the next task, or nil without --claim.
func (o *completeOptions) next(worker string) (*wire.Claim, error) {
	if !o.claim {
		return nil, nil
	}
	ms, err := wholeMS("--lease", o.lease)
	if err != nil {
		return nil, err
	}
	return &wire.Claim{WorkerID: worker, TaskTypes: o.types, LeaseMS: ms, ClaimRequestID: rand.Text()}, nil
}

// followUps puts the tasks into one array, byte for byte. It returns nil without tasks.
func followUps(a *term.App, args []string) ([]byte, error) {
	var all []byte
	for _, arg := range args {
		raw, err := jsonArgument(a, "--submit", arg)
		if err != nil {
			return nil, err
		}
		if raw[0] == '[' {
			raw = bytes.TrimSpace(raw[1 : len(raw)-1])
		}
		if len(raw) == 0 {
			continue
		}
		if all != nil {
			all = append(all, ',')
		}
		all = append(all, raw...)
	}
	if all == nil {
		return nil, nil
	}
	return append(append([]byte{'['}, all...), ']'), nil
}
