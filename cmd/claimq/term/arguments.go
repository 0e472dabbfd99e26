package term

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Arguments refuses arguments that are not those of the command's usage line: a word of
// it must be given, what stands in brackets may be, and one that ends in ... many times.
// What follows a | is another way to say what stands before it.
func Arguments(cmd *cobra.Command, args []string) error {
	required, most := argumentsOf(cmd.Use)
	switch {
	case len(args) < len(required):
		return MissingArgument(cmd, required[len(args)])
	case slices.Contains(args[:len(required)], ""):
		return UsageErrorf("%s is empty\nUsage: %s%s", required[slices.Index(args, "")], cmd.UseLine(), seeHelp(cmd))
	case len(args) > most:
		return UsageErrorf("%q is one argument too many\nUsage: %s%s", args[most], cmd.UseLine(), seeHelp(cmd))
	}
	return nil
}

// MissingArgument is the error of a command line without the argument of that name.
func MissingArgument(cmd *cobra.Command, name string) error {
	return UsageErrorf("%s is missing\nUsage: %s%s", name, cmd.UseLine(), seeHelp(cmd))
}

// argumentsMax is how many arguments a command takes that takes any number of them.
const argumentsMax = 1 << 16

// argumentsOf returns what a usage line has beside the command's name and flags: the names
// of the arguments that must be given, and how many there may be.
func argumentsOf(use string) (required []string, most int) {
	words := strings.Fields(use)[1:]
	for i := 0; i < len(words) && words[i] != "|"; i++ {
		switch word := words[i]; {
		case word == "--" || word == "[flags]" || strings.HasPrefix(word, "[--"):
		case strings.HasPrefix(word, "--"):
			i++ // its value
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

// Given refuses flags that are given without a value: what a script failed to read must not
// turn off what it was given for, as a filter. A setting of a server may be empty, as may
// what leads to the nodes, which beats its variable, and a reason.
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
