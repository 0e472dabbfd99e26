package term

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// variableOf returns the variables for a flag. Some are not named after their flag.
func variableOf(flag string) []string {
	switch flag {
	case "endpoint":
		return []string{"CLAIMQ_ENDPOINTS"}
	case "token": // claim --output env sets the second one
		return []string{"CLAIMQ_TOKEN", "CLAIMQ_CLAIM_TOKEN"}
	}
	return []string{"CLAIMQ_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))}
}

// VariablesOf returns the variables that some command below cmd reads.
func VariablesOf(cmd *cobra.Command) []string {
	names := []string{"CLAIMQ_CONFIG", "CLAIMQ_ENDPOINTS"}
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, variableOf(f.Name)...) })
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(cmd)
	return names
}

// ExplicitOnly marks a flag that no variable sets, because users must give settings that change something on the
// command line.
const ExplicitOnly = "claimq_explicit_only"

// SetFromVariables sets the flags that were not given from their variables.
func SetFromVariables(a *App, flags *pflag.FlagSet) error {
	var errs []error
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed || f.Name == "help" || f.Annotations[ExplicitOnly] != nil {
			return
		}
		for _, name := range variableOf(f.Name) {
			value := a.Getenv(name)
			if value == "" {
				continue
			}
			if err := flags.Set(f.Name, value); err != nil {
				errs = append(errs, UsageErrorf("%s=%q: %w", name, value, err))
			}
			return
		}
	})
	return errors.Join(errs...)
}

// OnlyExplicit marks the flags of cmd, except those that every client command has.
func OnlyExplicit(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		switch f.Name {
		case "endpoint", "api-key", "api-key-file", "ca-file", "cert-file", "key-file", "timeout", "output":
		default:
			f.Annotations = map[string][]string{ExplicitOnly: {}}
		}
	})
}
