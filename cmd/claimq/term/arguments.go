package term

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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
