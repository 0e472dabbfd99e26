package term

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// UnknownCommand refuses an unknown command, because cobra would take it as an argument of the root.
func UnknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = typosMax
	names := cmd.SuggestionsFor(args[0])
	if other := otherWords[args[0]]; other != "" && !cmd.HasParent() {
		about := "TYPE"
		if len(args) > 1 {
			about = args[1]
		}
		names = []string{strings.ReplaceAll(other, "TYPE", about)}
	}
	return UsageErrorf("unknown command %q%s%s", args[0], didYouMean(cmd.CommandPath()+" ", names), seeHelp(cmd))
}

// otherWords maps what commands are called elsewhere to what they are called here.
var otherWords = map[string]string{
	"dequeue": "claim --type TYPE",
	"enqueue": "submit TYPE",
	"jobs":    "list",
	"pause":   "type set TYPE --pause",
	"push":    "submit TYPE",
	"queue":   "types",
	"queues":  "types",
	"resume":  "type set TYPE --resume",
	"show":    "get",
	"tasks":   "list",
	"unpause": "type set TYPE --resume",
}

// FlagError returns the error for a command line with an invalid flag.
func FlagError(cmd *cobra.Command, err error) error {
	if args := cmd.Flags().Args(); IsGroup(cmd) && len(args) > 0 { // the flag is of a command that does not exist
		return UnknownCommand(cmd, args)
	}
	hint := ""
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		// cobra compares names of commands only.
		names := &cobra.Command{SuggestionsMinimumDistance: typosMax}
		for _, f := range FlagsOf(cmd) {
			names.AddCommand(&cobra.Command{Use: f.Name, Run: func(*cobra.Command, []string) {}})
		}
		hint = didYouMean("--", names.SuggestionsFor(unknown.GetSpecifiedName()))
	}
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		if why := whyInvalid(invalid); why != "" {
			err = fmt.Errorf("--%s is %q: %s", invalid.GetFlag().Name, invalid.GetValue(), why)
		}
	}
	return UsageErrorf("%w%s%s", err, hint, seeHelp(cmd))
}

// seeHelp returns the line that ends each error about a command line.
func seeHelp(cmd *cobra.Command) string { return "\nSee '" + cmd.CommandPath() + " --help'" }

// whyInvalid says what a flag's value must be. It returns "" if it does not know.
func whyInvalid(invalid *pflag.InvalidValueError) string {
	cause, flagType := invalid.Unwrap(), invalid.GetFlag().Value.Type()
	if said := cause.Error(); strings.HasPrefix(said, "it ") { // a setting of the server
		return said
	}
	form := formOf(flagType)
	if form == "" {
		return ""
	}
	if errors.Is(cause, strconv.ErrRange) {
		switch flagType {
		case "int32":
			form += fmt.Sprintf(" from %d to %d", math.MinInt32, math.MaxInt32)
		case "int", "int64":
			form += fmt.Sprintf(" from %d to %d", math.MinInt64, math.MaxInt64)
		}
	}
	return "it must be " + form
}

// formOf describes the values of a flag type. It returns "" if the type's own error says enough.
func formOf(flagType string) string {
	switch flagType {
	case "int", "int32", "int64":
		return "a whole number"
	case "uint":
		return "a positive number"
	case "uint64":
		return "a whole number, not negative"
	case "duration":
		return "a time as 500ms, 30s, 10m or 1d12h"
	case "bool":
		return "true or false"
	}
	return ""
}

// typosMax bounds the wrong letters of a name for a suggestion.
const typosMax = 2

// didYouMean asks whether the user meant one of the names. It returns "" without names.
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
