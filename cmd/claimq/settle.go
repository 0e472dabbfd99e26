package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client"
)

// settleOptions say which claim is meant.
type settleOptions struct {
	clientFlags
	worker string
	token  uint64
}

func (o *settleOptions) addFlags(a *app, cmd *cobra.Command) {
	addClientFlags(a, cmd, &o.clientFlags)
	cmd.Flags().StringVar(&o.worker, "worker", "", "who holds the claim (required; CLAIMQ_WORKER)")
	cmd.Flags().Uint64Var(&o.token, "token", 0, "the claim's token (required; CLAIMQ_CLAIM_TOKEN)")
}

// settle makes the call; body is made from what names the claim.
func (a *app) settle(ctx context.Context, o *settleOptions, arg, verb string, body func(wire.Settle) ([]byte, error)) error {
	id, err := parseID(arg)
	if err != nil {
		return err
	}
	if o.worker == "" || o.token == 0 {
		return usageErrorf("--worker and --token are required: claim has printed them, and so does 'claimq get %d'", id)
	}
	b, err := body(wire.Settle{WorkerID: o.worker, ClaimToken: o.token})
	if err != nil {
		return err
	}
	return a.talk(&o.clientFlags, func(s session) error {
		var answer wire.Answer
		r := client.Request{Method: http.MethodPost, Path: taskPath(id, verb), Body: b, Repeatable: true}
		shown, err := s.call(ctx, r, "Repeat the command: with the same token it is done once.", &answer)
		if err != nil || shown {
			return err
		}
		_, err = fmt.Fprintln(a.stdout, settledText(id, verb, &answer))
		return err
	})
}

func settledText(id uint64, verb string, answer *wire.Answer) string {
	if verb == "extend" {
		text := fmt.Sprintf("task %d: the lease has %s left", id, showDuration(time.Duration(answer.LeaseRemainingMS)*time.Millisecond))
		if answer.CancelRequested {
			text += "; somebody asked for the task to be cancelled"
		}
		return text
	}
	text := fmt.Sprintf("task %d", id)
	if answer.Task != nil {
		text += " is " + printable(answer.Task.Status)
	}
	if answer.Repeated {
		text += " (this had been done before)"
	}
	return text
}

func newCompleteCommand(a *app) *cobra.Command {
	var o settleOptions
	cmd := &cobra.Command{
		Use:   "complete ID [RESULT | @FILE | -]",
		Short: "Complete a claimed task",
		Long: `Complete a claimed task.

RESULT is JSON, kept byte for byte; @FILE reads it from a file, - from standard
input. Completing again with the same token is no error.`,
		Example: `  claimq complete 17 --worker w1 --token 5 '{"sent":true}'
  claimq complete 17 --worker w1 --token 5 @result.json`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			var result []byte
			if len(args) > 1 {
				var err error
				if result, err = a.jsonArgument("RESULT", args[1]); err != nil {
					return err
				}
			}
			return a.settle(cmd.Context(), &o, args[0], "complete", func(s wire.Settle) ([]byte, error) {
				return withRaw("result", result, s)
			})
		},
	}
	o.addFlags(a, cmd)
	return cmd
}

func newFailCommand(a *app) *cobra.Command {
	var o settleOptions
	var text string
	cmd := &cobra.Command{
		Use:   "fail ID",
		Short: "Fail the attempt of a claimed task",
		Long: `Fail the attempt of a claimed task: it is pending again if it has attempts left,
else failed. Failing again with the same token is no error.`,
		Example: `  claimq fail 17 --worker w1 --token 5 --error "no route to host"`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if text == "" {
				return usageErrorf("--error is missing: say what went wrong")
			}
			return a.settle(cmd.Context(), &o, args[0], "fail", func(s wire.Settle) ([]byte, error) {
				s.Error = text
				return json.Marshal(s)
			})
		},
	}
	o.addFlags(a, cmd)
	cmd.Flags().StringVar(&text, "error", "", "what went wrong (required)")
	return cmd
}

func newExtendCommand(a *app) *cobra.Command {
	var o settleOptions
	var lease time.Duration
	cmd := &cobra.Command{
		Use:     "extend ID",
		Short:   "Extend the lease of a claim",
		Long:    `Extend the lease of a claim. An extend never makes it end earlier.`,
		Example: `  claimq extend 17 --worker w1 --token 5 --lease 10m`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkLease(lease); err != nil {
				return err
			}
			return a.settle(cmd.Context(), &o, args[0], "extend", func(s wire.Settle) ([]byte, error) {
				s.LeaseMS = lease.Milliseconds()
				return json.Marshal(s)
			})
		},
	}
	o.addFlags(a, cmd)
	cmd.Flags().DurationVar(&lease, "lease", 0, "how long it lasts from now on; 0: as long as the claim lasted at first")
	return cmd
}

func newReleaseCommand(a *app) *cobra.Command {
	var o settleOptions
	cmd := &cobra.Command{
		Use:     "release ID",
		Short:   "Give a claimed task back",
		Long:    `Give a claimed task back unharmed: it is pending again, and the attempt is not counted.`,
		Example: `  claimq release 17 --worker w1 --token 5`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.settle(cmd.Context(), &o, args[0], "release", func(s wire.Settle) ([]byte, error) {
				return json.Marshal(s)
			})
		},
	}
	o.addFlags(a, cmd)
	return cmd
}
