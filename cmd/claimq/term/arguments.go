package term

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/claimq/claimq/internal/timespan"
)

// Arguments checks the arguments against the command's usage line. A plain word must be given, a word in brackets may
// be given, and a word that ends in ... may be given many times. The word after a | is an alternative to the
// word before it.
func Arguments(cmd *cobra.Command, args []string) error {
	required, most := argumentsOf(cmd.Use)
	switch {
	case len(args) < len(required):
		return MissingArgument(cmd, required[len(args)])
	case slices.Contains(args[:len(required)], ""):
		return UsageErrorf("%s is empty\nUsage: %s%s", required[slices.Index(args, "")], cmd.UseLine(), seeHelp(cmd))
	case len(args) > most:
		hint := ""
		if most == 0 && cmd.Flags().Lookup("type") != nil {
			hint = didYouMean("--type ", []string{args[0]})
		}
		return UsageErrorf("%q is one argument too many%s\nUsage: %s%s", args[most], hint, cmd.UseLine(), seeHelp(cmd))
	}
	return nil
}

// MissingArgument returns the error for a command line without the named argument.
func MissingArgument(cmd *cobra.Command, name string) error {
	return UsageErrorf("%s is missing\nUsage: %s%s", name, cmd.UseLine(), seeHelp(cmd))
}

// argumentsMax bounds the arguments of a command that takes any number of them.
const argumentsMax = 1 << 16

// argumentsOf returns the names of the arguments that a usage line requires, and how many arguments it allows.
func argumentsOf(use string) (required []string, most int) {
	words := strings.Fields(use)[1:]
	for i := 0; i < len(words) && words[i] != "|"; i++ {
		switch word := words[i]; {
		case word == "--" || word == "[flags]" || strings.HasPrefix(word, "[--"):
		case strings.HasPrefix(word, "--"):
			i++ // skip its value
		case strings.HasPrefix(word, "["):
			for ; !strings.HasSuffix(words[i], "]"); i++ {
			}
			if most++; strings.HasSuffix(words[i], "...]") {
				most = argumentsMax
			}
		default:
			required = append(required, word)
			most++
		}
	}
	return required, most
}

// Given refuses flags with an empty value. If a script fails to read a value, a flag such as a filter must not be
// switched off. Empty values are allowed for a server's settings, for a reason, and for the flags that lead to the
// nodes, because these override their variables.
func Given(cmd *cobra.Command, _ []string) error {
	if cmd.Flags().Lookup("config") != nil {
		return nil
	}
	var err error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		list, isList := f.Value.(pflag.SliceValue)
		if empty := isList && len(list.GetSlice()) == 0 || f.Value.Type() == "string" && f.Value.String() == ""; !empty || err != nil {
			return
		}
		switch f.Name {
		case "endpoint", "api-key", "api-key-file", "ca-file", "cert-file", "key-file", "error":
		default:
			err = UsageErrorf("--%s is empty: give it a value, or leave it out%s", f.Name, seeHelp(cmd))
		}
	})
	return err
}

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

// durationValue is the value of a flag that takes a length of time as ShowDuration prints it.
type durationValue struct{ p *time.Duration }

// DurationVar defines a flag for a length of time.
func DurationVar(f *pflag.FlagSet, p *time.Duration, name string, value time.Duration, usage string) {
	*p = value
	f.Var(durationValue{p}, name, usage)
}

func (v durationValue) Set(s string) (err error) {
	*v.p, err = timespan.Parse(s)
	return err
}

func (v durationValue) Type() string { return "duration" }

// String returns "0" for no time, which help does not show as a default.
func (v durationValue) String() string {
	if v.p == nil || *v.p == 0 {
		return "0"
	}
	return v.p.String()
}
