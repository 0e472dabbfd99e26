package cli

import (
	"github.com/spf13/cobra"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
)

const defaultsPath = "/api/defaults"

// setsAgain tells users what to do when they do not know whether a setting was changed.
const setsAgain = "Repeat the command: it sets the same again."

// NewDefaultsCommand returns the command `claimq defaults`.
func NewDefaultsCommand(a *term.App) *cobra.Command {
	cmd := session.Look(a, &cobra.Command{
		Use:   "defaults",
		Short: "Show the server's defaults for tasks of all types",
		Long: `Show the server's defaults. They apply to a task if neither the task nor its type has
the setting. They are the same on all nodes.`,
		Example: "  claimq defaults\n  claimq defaults set --max-attempts 10 --backoff 1s,1h,2,0.2",
		Args:    term.UnknownCommand,
	}, session.At(defaultsPath), func(answer *wire.Defaults) error { return showDefaults(a, answer) })
	cmd.AddCommand(newDefaultsSetCommand(a))
	return cmd
}

func newDefaultsSetCommand(a *term.App) *cobra.Command {
	var o taskDefaults
	cmd := &cobra.Command{
		Use:   "set",
		Short: "Change the server's defaults for tasks of all types",
		Long: `Change the server's defaults. They apply to a task if neither the task nor its type
has the setting. Defaults without a flag stay as they are; none goes back to the
built-in default. A new default for attempts applies to tasks submitted from now on,
the other defaults to all tasks.`,
		Example: `  claimq defaults set --max-attempts 10 --backoff 1s,1h,2,0.2
  claimq defaults set --lease 2m --retention 7d
  claimq defaults set --backoff none`,
	}
	session.Command(a, cmd, func([]string) (session.Request, error) {
		fields := map[string]any{}
		if err := addSettings(fields, o.settings()); err != nil {
			return session.Request{}, err
		}
		if len(fields) == 0 {
			return session.Request{}, term.UsageErrorf("say what to set: --lease, --max-attempts, --backoff or --retention")
		}
		return session.Patch(defaultsPath, fields, setsAgain)
	}, func(_ []string, answer *wire.Defaults) error { return showDefaults(a, answer) })
	o.addTo(cmd.Flags(), "the server's default")
	term.OnlyExplicit(cmd)
	return cmd
}

func showDefaults(a *term.App, answer *wire.Defaults) error {
	d := &answer.Defaults
	if d.Backoff == nil {
		d.Backoff = &wire.Backoff{}
	}
	words := settingsOf(&wire.TypeSettings{LeaseMS: &d.LeaseMS, MaxAttempts: &d.MaxAttempts, Backoff: d.Backoff, RetentionMS: &d.RetentionMS})
	var f term.Fields
	names := []string{"lease", "attempts", "backoff", "retention"}
	for i, word := range words[len(words)-len(names):] { // the last ones
		f.Add(names[i], term.Cell(word))
	}
	f.Add("if failed", term.ShowRetention(d.FailedRetentionMS))
	return term.Columns(a.Stdout, f)
}
