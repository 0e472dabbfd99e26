package cli

import (
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
)

type bulkOptions struct {
	filterFlags
	all         bool
	dryRun      bool
	expect      int64
	addAttempts int32
}

// NewBulkCommand returns the command `claimq bulk`.
func NewBulkCommand(a *term.App) *cobra.Command {
	cmd := term.Group(&cobra.Command{
		Use:   "bulk",
		Short: "Retry, cancel or delete many tasks",
		Long: `Retry, cancel or delete all tasks that match a filter. --dry-run only shows how many
match, how many would be changed, and why the others would not. With --expect nothing
happens unless exactly that many tasks match. The command works in steps, not
atomically: it skips tasks that no longer match when their step comes, and tasks that
refuse, such as a task that has not ended when you delete.`,
		Example: `  claimq bulk retry --status failed --type mail --dry-run
  claimq bulk retry --status failed --type mail --expect 112 --add-attempts 3
  claimq bulk delete --status completed --created-before 7d`,
	})
	for _, action := range []string{"retry", "cancel", "delete"} {
		cmd.AddCommand(newBulkActionCommand(a, action))
	}
	return cmd
}

func newBulkActionCommand(a *term.App, action string) *cobra.Command {
	var o bulkOptions
	cmd := &cobra.Command{
		Use:     action,
		Short:   map[string]string{"retry": "Retry many tasks", "cancel": "Cancel many tasks", "delete": "Delete many ended tasks"}[action],
		Example: fmt.Sprintf("  claimq bulk %s --status failed --type mail --dry-run", action),
	}
	session.Acts(a, cmd, func(cmd *cobra.Command, _ []string) (session.Act, error) {
		w, err := o.action(a, cmd, action)
		return func(s session.Talk) error { return bulk(s, cmd, w) }, err
	})
	f := cmd.Flags()
	o.addFilterFlags(f)
	f.BoolVar(&o.all, "all", false, "select all tasks; required without a filter")
	f.BoolVar(&o.dryRun, "dry-run", false, "only show how many tasks match, how many would be changed, and why the others would not")
	f.Int64Var(&o.expect, "expect", 0, "do nothing unless exactly this many tasks match")
	if action == "retry" {
		f.Int32Var(&o.addAttempts, "add-attempts", 0, "add this many attempts to each")
	}
	term.OnlyExplicit(cmd)
	return cmd
}

// action builds the request from the flags.
func (o *bulkOptions) action(a *term.App, cmd *cobra.Command, action string) (*wire.Action, error) {
	filter, err := o.filter(a.Clock())
	if err != nil {
		return nil, err
	}
	switch none := len(Query(&filter)) == 0; {
	case none && !o.all:
		return nil, term.UsageErrorf("say which tasks: --status, --type, --worker, --label, --created-before, --error-group, ..., or --all")
	case !none && o.all:
		return nil, term.UsageErrorf("--all and a filter are both given: give one of them")
	}
	w := &wire.Action{Action: action, Filter: filter, All: o.all, AddAttempts: o.addAttempts, DryRun: o.dryRun}
	if cmd.Flags().Changed("expect") {
		w.Expect = &o.expect
	}
	return w, nil
}

// bulk repeats the request until everything is done. The server answers after a while, and says what it has done by
// then.
func bulk(s session.Talk, cmd *cobra.Command, w *wire.Action) error {
	var done, matched int64
	for {
		r, err := session.Post("/api/tasks/actions", w, "Repeat the command without --expect: it does what is left.")
		if err != nil {
			return err
		}
		var acted wire.Acted
		shown, err := s.Call(cmd.Context(), r.Once(), &acted)
		if err != nil {
			return err
		}
		done += acted.Done
		matched = max(matched, acted.Matched)
		if acted.More && acted.Done > 0 {
			w.Expect = nil // it was met
			continue
		}
		if acted.More && !w.DryRun {
			return fmt.Errorf("%s matched, %s done: the last request did nothing, and there is more to do. Repeat the command without --expect", term.Count(matched, "task"), term.Number(done))
		}
		if shown {
			return nil
		}
		if w.DryRun {
			return showDryRun(s.App, &acted)
		}
		text := term.Count(matched, "task") + " matched, " + term.Number(done) + " done"
		if done < matched {
			text += "; --dry-run says why of the rest"
		}
		return s.App.Sayf("%s", text)
	}
}

// leftWhy maps the server's code for leaving a task alone to the reason in words.
var leftWhy = map[string]string{
	"forbidden":            "steps of types that the key may not touch",
	"key_taken":            "another task has their key",
	"max_attempts_reached": "no attempts left (--add-attempts gives some)",
	"nothing_to_do":        "nothing to do",
	"task_cancelled":       "cancelled, or of a task that is",
	"task_completed":       "completed, or of a task that is",
	"task_failed":          "failed, or waiting for a step or of a task that is",
	"task_not_terminal":    "not ended, or steps",
}

// showDryRun prints what an action would change.
func showDryRun(a *term.App, acted *wire.Acted) error {
	verb := "match"
	if acted.Matched == 1 {
		verb = "matches"
	}
	text := term.Count(acted.Matched, "task") + " " + verb
	if acted.Can != nil && acted.Matched > 0 {
		text += "; it can be done with " + term.Number(*acted.Can)
		for _, why := range slices.Sorted(maps.Keys(acted.Cannot)) {
			words := leftWhy[why]
			if words == "" {
				words = term.Printable(why)
			}
			text += fmt.Sprintf("\n%s: %s", words, term.Number(acted.Cannot[why]))
		}
	}
	return a.Sayf("%s", text)
}
