package term

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Group makes cmd a command that only leads to its subcommands.
func Group(cmd *cobra.Command, below ...*cobra.Command) *cobra.Command {
	cmd.Args = UnknownCommand
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(below...)
	return cmd
}

// EachCommand calls visit for cmd and all commands below it, in order. path is the words that call the command from
// cmd, "" for cmd itself.
func EachCommand(cmd *cobra.Command, visit func(cmd *cobra.Command, path string)) {
	var walk func(cmd *cobra.Command, path string)
	walk = func(cmd *cobra.Command, path string) {
		visit(cmd, path)
		for _, sub := range cmd.Commands() {
			walk(sub, strings.TrimPrefix(path+" "+sub.Name(), " "))
		}
	}
	walk(cmd, "")
}

// IsGroup reports whether the command only leads to its subcommands.
func IsGroup(cmd *cobra.Command) bool {
	return cmd.HasAvailableSubCommands() && cmd.Flags().Lookup("output") == nil
}

// FlagsOf returns the visible flags of a command by name, without --help.
func FlagsOf(cmd *cobra.Command) []*pflag.Flag {
	var flags []*pflag.Flag
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" {
			flags = append(flags, f)
		}
	})
	return flags
}
