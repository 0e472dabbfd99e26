package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/cmd/claimq/term"
)

// helpWidthMax keeps lines of help readable on a wide terminal.
const helpWidthMax = 120

// commandGroups are the groups of commands in the root's help.
var commandGroups = [...]struct {
	title    string
	commands []string
}{
	{"Tasks", []string{"submit", "get", "list", "why", "failures", "events", "update", "cancel", "retry", "delete", "bulk", "batch"}},
	{"Workers", []string{"work", "claim", "complete", "fail", "extend", "release"}},
	{"Steps", []string{"steps", "finalization", "finalize"}},
	{"Types and schedules", []string{"type", "types", "defaults", "schedule"}},
	{"Monitoring", []string{"stats", "history", "workers", "top"}},
	{"Nodes", []string{"dev", "server", "cluster", "snapshot", "key", "config", "doctor", "health", "bench", "testserver"}},
	{"Other", []string{"completion", "version", "help"}},
}

// suggestTopics makes help refuse an unknown command as the command line does, because cobra's own would show the
// root's help.
func suggestTopics(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	for _, help := range root.Commands() {
		if help.Name() == "help" {
			help.Run = nil
			help.RunE = func(_ *cobra.Command, args []string) error {
				cmd, rest, err := root.Find(args)
				if err != nil {
					return err
				}
				if len(rest) > 0 && cmd.HasAvailableSubCommands() {
					return term.UnknownCommand(cmd, rest)
				}
				cmd.InitDefaultHelpFlag()
				return cmd.Help()
			}
		}
	}
}

// showUsage prints the usage of a command: like cobra's, but with the commands in groups, and lines that fit the
// terminal.
func showUsage(a *term.App, cmd *cobra.Command) error {
	var b strings.Builder
	b.WriteString("Usage:\n")
	if !term.IsGroup(cmd) {
		fmt.Fprintf(&b, "  %s\n", cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "  %s COMMAND\n", cmd.CommandPath())
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
		if a.Width > 0 {
			width = min(a.Width, helpWidthMax)
		}
		fmt.Fprintf(&b, "\nFlags:\n%s", cmd.LocalFlags().FlagUsagesWrapped(width))
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n'%s COMMAND --help' tells more about a command.\n", cmd.CommandPath())
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
