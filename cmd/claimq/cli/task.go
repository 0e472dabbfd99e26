package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
)

// NewGetCommand returns the command `claimq get`.
func NewGetCommand(a *term.App) *cobra.Command {
	var f session.Flags
	var key string
	cmd := &cobra.Command{
		Use:     "get ID | --key KEY",
		Short:   "Show a task",
		Example: "  claimq get 17\n  claimq get --key letter-17\n  claimq get 17 --output json",
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case key == "":
				return term.Arguments(cmd, args)
			case len(args) > 0:
				return term.UsageErrorf("ID and --key are both given: give one of them")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			path := "/api/tasks/by-key/" + url.PathEscape(key)
			if key == "" {
				id, err := session.ParseID(args[0])
				if err != nil {
					return err
				}
				path = session.TaskPath(id, "")
			}
			return session.With(a, &f, func(s session.Talk) error {
				var answer wire.Answer
				shown, err := s.Call(cmd.Context(), client.Request{Method: http.MethodGet, Path: path}, "", &answer)
				if err != nil || shown || answer.Task == nil {
					return err
				}
				return a.ShowTask(answer.Task)
			})
		},
	}
	session.AddFlags(a, cmd, &f)
	session.Within(cmd, session.LookTimeout)
	cmd.Flags().StringVar(&key, "key", "", "in place of ID: the idempotency key that the task was submitted with")
	term.OnlyExplicit(cmd) // CLAIMQ_KEY is that of a task to submit
	return cmd
}

// NewRetryCommand returns the command `claimq retry`.
func NewRetryCommand(a *term.App) *cobra.Command {
	var f session.Flags
	var add int32
	var token positive
	cmd := &cobra.Command{
		Use:   "retry ID",
		Short: "Make a failed, cancelled, scheduled or claimed task pending again",
		Long: `Make a failed, cancelled or claimed task pending again, if it has attempts left. A
claim is taken from its worker. A scheduled task does not wait any longer. Of a task
with steps, those that failed or were cancelled are retried.

With --token nothing happens to a task that has been claimed again since: so the
command can be repeated.`,
		Example: "  claimq retry 17\n  claimq retry 17 --add-attempts 3\n  claimq retry 17 --token 5",
		Args:    term.Arguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := session.ParseID(args[0])
			if err != nil {
				return err
			}
			body, err := json.Marshal(wire.Retry{ClaimToken: uint64(token), AddAttempts: add})
			if err != nil {
				return err
			}
			return session.With(a, &f, func(s session.Talk) error {
				var answer wire.Answer
				r := client.Request{Method: http.MethodPost, Path: session.TaskPath(id, "retry"), Body: body}
				unknown := fmt.Sprintf("Look at the task with 'claimq get %d' before you repeat it.", id)
				shown, err := s.Call(cmd.Context(), r, unknown, &answer)
				if err != nil || shown {
					return err
				}
				_, err = fmt.Fprintln(a.Stdout, settledText(a, id, "retry", &answer))
				return err
			})
		},
	}
	session.AddFlags(a, cmd, &f)
	cmd.Flags().Int32Var(&add, "add-attempts", 0, "give it so many attempts more first")
	cmd.Flags().Var(&token, "token", "only if this is the token of the task's current or last claim")
	// The token of a claim in the environment may be of another task.
	cmd.Flags().Lookup("token").Annotations = map[string][]string{term.ExplicitOnly: {}}
	return cmd
}

// NewDeleteCommand returns the command `claimq delete`.
func NewDeleteCommand(a *term.App) *cobra.Command {
	var f session.Flags
	cmd := &cobra.Command{
		Use:     "delete ID",
		Short:   "Delete a task that has ended",
		Long:    `Delete a task that has ended. Its idempotency key is free at once.`,
		Example: "  claimq delete 17",
		Args:    term.Arguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			return session.WithTask(a, &f, args[0], func(s session.Talk, id uint64) error {
				const unknown = "Repeat the command: that there is no such task means that it is done."
				if f.Output == "json" { // as the server said it; to a repeat it says that there is no such task
					// Ids are never used again: a repeat deletes nothing else.
					r := client.Request{Method: http.MethodDelete, Path: session.TaskPath(id, ""), Repeatable: true}
					_, err := s.Call(cmd.Context(), r, unknown, &wire.Answer{})
					return err
				}
				if err := s.Client.Delete(cmd.Context(), strconv.FormatUint(id, 10)); err != nil {
					return &term.CallError{Err: err, Unknown: unknown}
				}
				_, err := fmt.Fprintf(a.Stdout, "task %d is deleted\n", id)
				return err
			})
		},
	}
	session.AddFlags(a, cmd, &f)
	return cmd
}
