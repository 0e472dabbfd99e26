package term

import (
	"strings"

	"github.com/spf13/cobra"
)

// Arguments refuses arguments that are not those of the command's usage line: a word of
// it must be given, what stands in brackets may be, and one that ends in ... many times.
// What follows a | is another way to say what stands before it.
func Arguments(cmd *cobra.Command, args []string) error {
	required, most := argumentsOf(cmd.Use)
	switch {
	case len(args) < len(required):
		return MissingArgument(cmd, required[len(args)])
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
