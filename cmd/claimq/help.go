package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpWidthMax keeps lines of help readable on a wide terminal.
const helpWidthMax = 120

// commandGroups are the commands of the root as its help shows them.
var commandGroups = [...]struct {
	title    string
	commands []string
}{
	{"Tasks", []string{"submit", "get", "list", "why", "events", "update", "cancel", "retry", "delete", "bulk", "batch"}},
	{"Workers", []string{"work", "claim", "complete", "fail", "extend", "release"}},
	{"Steps", []string{"steps", "finalization", "finalize"}},
	{"Types and schedules", []string{"type", "types", "schedule"}},
	{"See what goes on", []string{"stats", "workers", "top"}},
	{"Nodes", []string{"dev", "server", "cluster", "snapshot", "key", "config", "doctor", "health", "bench"}},
	{"Other", []string{"completion", "man", "version", "help"}},
}

// showUsage prints how a command is called: it has the parts of cobra's own, with
// the commands in groups, and lines that fit the terminal.
func (a *app) showUsage(cmd *cobra.Command) error {
	var b strings.Builder
	b.WriteString("Usage:\n")
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "  %s COMMAND\n", cmd.CommandPath())
	} else {
		fmt.Fprintf(&b, "  %s\n", cmd.UseLine())
	}
	if cmd.Example != "" {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", cmd.Example)
	}
	switch {
	case !cmd.HasParent():
		rest := availableCommands(cmd)
		for _, group := range commandGroups {
			named := slices.DeleteFunc(availableCommands(cmd), func(sub *cobra.Command) bool { return !slices.Contains(group.commands, sub.Name()) })
			slices.SortFunc(named, func(x, y *cobra.Command) int {
				return slices.Index(group.commands, x.Name()) - slices.Index(group.commands, y.Name())
			})
			rest = slices.DeleteFunc(rest, func(sub *cobra.Command) bool { return slices.Contains(named, sub) })
			writeCommands(&b, group.title, named)
		}
		writeCommands(&b, "More", rest)
	case cmd.HasAvailableSubCommands():
		writeCommands(&b, "Commands", availableCommands(cmd))
	}
	if cmd.HasAvailableLocalFlags() {
		width := 0
		if a.width > 0 {
			width = min(a.width, helpWidthMax)
		}
		fmt.Fprintf(&b, "\nFlags:\n%s", cmd.LocalFlags().FlagUsagesWrapped(width))
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n'%s COMMAND --help' says more of a command.\n", cmd.CommandPath())
	}
	_, err := fmt.Fprint(cmd.OutOrStderr(), b.String())
	return err
}

func availableCommands(cmd *cobra.Command) []*cobra.Command {
	return slices.DeleteFunc(slices.Clone(cmd.Commands()), func(sub *cobra.Command) bool {
		return !sub.IsAvailableCommand() && sub.Name() != "help"
	})
}

func writeCommands(b *strings.Builder, title string, commands []*cobra.Command) {
	if len(commands) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s:\n", title)
	for _, sub := range commands {
		fmt.Fprintf(b, "  %-12s %s\n", sub.Name(), sub.Short)
	}
}

// flagError is what a command line says that has a flag which does not make sense.
func flagError(cmd *cobra.Command, err error) error {
	hint := ""
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		// cobra compares names of commands only.
		names := &cobra.Command{SuggestionsMinimumDistance: slipMax}
		for _, f := range flagsOf(cmd) {
			names.AddCommand(&cobra.Command{Use: f.Name, Run: func(*cobra.Command, []string) {}})
		}
		hint = didYouMean("--", names.SuggestionsFor(unknown.GetSpecifiedName()))
	}
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		if form := formOf(invalid.GetFlag().Value.Type()); form != "" {
			err = fmt.Errorf("--%s is %q: it must be %s", invalid.GetFlag().Name, invalid.GetValue(), form)
		}
	}
	return usageErrorf("%w%s\nSee '%s --help'", err, hint, cmd.CommandPath())
}

// formOf is what a flag of the type takes, in words; "" if its own error says so.
func formOf(flagType string) string {
	switch flagType {
	case "int", "int32", "int64":
		return "a whole number"
	case "uint64":
		return "a whole number, not negative"
	case "duration":
		return "a time as 500ms, 30s or 10m"
	case "bool":
		return "true or false"
	}
	return ""
}

// slipMax is how many letters of a name may be wrong.
const slipMax = 2

// unknownCommand refuses what is not a command; cobra would take it as an
// argument of the root.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = slipMax
	return fmt.Errorf("unknown command %q%s", args[0], didYouMean(cmd.CommandPath()+" ", cmd.SuggestionsFor(args[0])))
}

// didYouMean asks whether one of the names was meant, "" if there are none.
func didYouMean(prefix string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	for i := range names {
		names[i] = "'" + prefix + names[i] + "'"
	}
	return "\nDid you mean " + strings.Join(names, " or ") + "?"
}
