package cli

import (
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
)

// NewGetCommand returns the command `claimq get`.
func NewGetCommand(a *term.App) *cobra.Command {
	var key string
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "get ID | --key KEY",
		Short: "Show a task",
		Long: `Show a task. --wait waits for its end first: the exit code is then 1 if it failed or
was cancelled, and 3 if it has not ended in that time.`,
		Example: `  claimq get 17
  claimq get --key letter-17
  claimq get 17 --wait 30s
  claimq get 17 --output json`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case !cmd.Flags().Changed("key"):
				return term.Arguments(cmd, args)
			case len(args) > 0:
				return term.UsageErrorf("ID and --key are both given: give one of them")
			}
			return nil
		},
	}
	session.Acts(a, cmd, func(cmd *cobra.Command, args []string) (session.Act, error) {
		path := "/api/tasks/by-key/" + url.PathEscape(key)
		if key == "" {
			id, err := session.ParseID(args[0])
			if err != nil {
				return nil, err
			}
			path = session.TaskPath(id, "")
		}
		if wait < 0 {
			return nil, term.UsageErrorf("--wait is %v: it must not be negative", wait)
		}
		return func(s session.Talk) error {
			if wait > 0 {
				return showEnded(cmd.Context(), s, path, wait)
			}
			return session.Ask(cmd.Context(), s, session.Get(path), func(answer *wire.Answer) error { return a.ShowTask(answer.Task) })
		}, nil
	})
	session.Within(cmd, session.LookTimeout)
	cmd.Flags().StringVar(&key, "key", "", "in place of ID: the idempotency key that the task was submitted with")
	term.DurationVar(cmd.Flags(), &wait, "wait", 0, "how long to wait for the end of the task")
	term.OnlyExplicit(cmd) // CLAIMQ_KEY is the key of a task to submit
	return cmd
}

// NewRetryCommand returns the command `claimq retry`.
func NewRetryCommand(a *term.App) *cobra.Command {
	var add int32
	var token positive
	cmd := &cobra.Command{
		Use:   "retry ID",
		Short: "Make a failed, cancelled, scheduled or claimed task pending again",
		Long: `Make a failed, cancelled or claimed task pending again if it has attempts left. A
worker that holds it loses its claim. A scheduled task stops waiting for its time.
For a task with steps, the failed and cancelled steps are retried.

With --token, nothing happens if the task has been claimed again since. You can then
repeat the command safely.`,
		Example: "  claimq retry 17\n  claimq retry 17 --add-attempts 3\n  claimq retry 17 --token 5",
	}
	session.Command(a, cmd, func(args []string) (session.Request, error) {
		unknown := fmt.Sprintf("Look at the task with 'claimq get %s' before you repeat it.", args[0])
		r, err := session.PostTask(args[0], "retry", wire.Retry{ClaimToken: uint64(token), AddAttempts: add}, unknown)
		return r.Once(), err
	}, settled(a, "retry"))
	cmd.Flags().Int32Var(&add, "add-attempts", 0, "add this many attempts first")
	cmd.Flags().Var(&token, "token", "only if this is the token of the task's current or last claim")
	// A token in the environment may belong to the claim of another task.
	cmd.Flags().Lookup("token").Annotations = map[string][]string{term.ExplicitOnly: {}}
	return cmd
}

// NewDeleteCommand returns the command `claimq delete`.
func NewDeleteCommand(a *term.App) *cobra.Command {
	return session.Acts(a, &cobra.Command{
		Use:     "delete ID",
		Short:   "Delete a task that has ended",
		Long:    `Delete a task that has ended. Its idempotency key can be used again at once.`,
		Example: "  claimq delete 17",
	}, func(cmd *cobra.Command, args []string) (session.Act, error) {
		id, err := session.ParseID(args[0])
		return func(s session.Talk) error {
			const unknown = "Repeat the command: that there is no such task means that it is done."
			if s.Flags.Output == "json" { // print the server's answer; for a repeat it is that the task does not exist
				// The server never uses an id twice, so a repeat deletes nothing else.
				r, _ := session.Delete(session.TaskPath(id, ""), unknown)
				_, err := s.Call(cmd.Context(), r, &wire.Answer{})
				return err
			}
			if err := s.Client.Delete(cmd.Context(), strconv.FormatUint(id, 10)); err != nil {
				return &term.CallError{Err: err, Unknown: unknown}
			}
			return a.Sayf("task %d is deleted", id)
		}, err
	})
}
