package cli

import (
	"encoding/json"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
)

const defaultsPath = "/api/defaults"

// NewDefaultsCommand returns the command `claimq defaults`.
func NewDefaultsCommand(a *term.App) *cobra.Command {
	var f session.Flags
	cmd := &cobra.Command{
		Use:   "defaults",
		Short: "Show the server's defaults for tasks of all types",
		Long: `Show the server's defaults: what counts for a task where neither the task nor its type
says otherwise. They are the same on all nodes.`,
		Example: "  claimq defaults\n  claimq defaults set --max-attempts 10 --backoff 1s,1h,2,0.2",
		Args:    term.UnknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return session.With(a, &f, func(s session.Talk) error {
				return callDefaults(cmd, a, s, client.Request{Method: http.MethodGet, Path: defaultsPath}, "")
			})
		},
	}
	session.AddFlags(a, cmd, &f)
	session.Within(cmd, session.LookTimeout)
	cmd.AddCommand(newDefaultsSetCommand(a))
	return cmd
}

func newDefaultsSetCommand(a *term.App) *cobra.Command {
	var f session.Flags
	var o taskDefaults
	cmd := &cobra.Command{
		Use:   "set",
		Short: "Change the server's defaults for tasks of all types",
		Long: `Change the server's defaults: what counts for a task where neither the task nor its
type says otherwise. What no flag names stays as it is; none clears a default: then
what is built in counts. The attempts are those of tasks submitted from now on, the
other defaults count for all tasks.`,
		Example: `  claimq defaults set --max-attempts 10 --backoff 1s,1h,2,0.2
  claimq defaults set --lease 2m --retention 7d
  claimq defaults set --backoff none`,
		Args: term.Arguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			fields := map[string]any{}
			if err := addSettings(fields, o.settings()); err != nil {
				return err
			}
			if len(fields) == 0 {
				return term.UsageErrorf("say what to set: --lease, --max-attempts, --backoff or --retention")
			}
			body, err := json.Marshal(fields)
			if err != nil {
				return err
			}
			return session.With(a, &f, func(s session.Talk) error {
				r := client.Request{Method: http.MethodPatch, Path: defaultsPath, Body: body, Repeatable: true}
				return callDefaults(cmd, a, s, r, "Repeat the command: it sets the same again.")
			})
		},
	}
	session.AddFlags(a, cmd, &f)
	o.addTo(cmd.Flags(), "the server's default")
	term.OnlyExplicit(cmd)
	return cmd
}

// callDefaults makes the call and shows the defaults that it answers.
func callDefaults(cmd *cobra.Command, a *term.App, s session.Talk, r client.Request, unknown string) error {
	var answer wire.Defaults
	shown, err := s.Call(cmd.Context(), r, unknown, &answer)
	if err != nil || shown {
		return err
	}
	d := &answer.Defaults
	if d.Backoff == nil {
		d.Backoff = &wire.Backoff{}
	}
	words := settingsOf(&wire.TypeSettings{LeaseMS: &d.LeaseMS, MaxAttempts: &d.MaxAttempts, Backoff: d.Backoff, RetentionMS: &d.RetentionMS})
	var f term.Fields
	for i, name := range []string{"lease", "attempts", "backoff", "retention"} {
		f.Add(name, term.Cell(words[i+2]))
	}
	f.Add("if failed", term.ShowRetention(d.FailedRetentionMS))
	return term.Columns(a.Stdout, f)
}
