package operate

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/config"
)

// NewConfigCommand returns the command `claimq config`.
func NewConfigCommand(a *term.App) *cobra.Command {
	return term.Group(&cobra.Command{
		Use:     "config",
		Short:   "Show a server's settings",
		Example: "  claimq config show --config /etc/claimq/claimq.yaml",
	}, newConfigShowCommand(a))
}

func newConfigShowCommand(a *term.App) *cobra.Command {
	var file string
	var o term.OutputFlag
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show every setting of a server, and where its value comes from",
		Long: `Show every setting that 'claimq server' would use with the same file, variables and
flags, and whether it comes from a flag, a variable, the file or the default. Secrets
are not shown: for an API key you see the first digits of its hash, for the join key
the name of its file. The command neither contacts nor starts a server. If there are
mistakes, it lists them all and exits with 2.`,
		Example: `  claimq config show --config /etc/claimq/claimq.yaml
  CLAIMQ_MEMORY_LIMIT=4GiB claimq config show --node-id n1 --data-dir d --output json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				file = a.Getenv("CLAIMQ_CONFIG")
			}
			loaded, err := config.LoadServer(file, a.Environ, cmd.Flags())
			if err != nil {
				return term.UsageErrorf("%w", err)
			}
			loaded.Warnings = append(loaded.Warnings, config.MisspelledVariables(a.Environ, term.VariablesOf(cmd.Root()))...)
			if o.Output == "json" {
				return showConfigJSON(a, &loaded)
			}
			return showConfig(a, &loaded)
		},
	}
	config.AddServerFlags(cmd.Flags())
	cmd.Flags().StringVar(&file, "config", "", "YAML file with settings (CLAIMQ_CONFIG)")
	o.Add(cmd)
	return cmd
}

func showConfig(a *term.App, loaded *config.Loaded) error {
	rows := [][]string{{"SETTING", "VALUE", "ORIGIN"}}
	for _, s := range loaded.Show() {
		for _, line := range s.Lines {
			rows = append(rows, []string{s.Name, cmp.Or(term.Printable(line), "-"), term.Printable(s.Origin.String())})
		}
	}
	if err := a.Table(rows); err != nil {
		return err
	}
	for _, w := range loaded.Warnings {
		fmt.Fprintln(a.Stderr, "warning: "+term.Printable(w))
	}
	return nil
}

// ShownSetting is one setting in the command's JSON.
type ShownSetting struct {
	Name   string `json:"name"`
	Value  any    `json:"value"`
	Origin string `json:"origin"`           // default, file, variable or flag
	Source string `json:"source,omitempty"` // its name; if two files set it, both
}

func showConfigJSON(a *term.App, loaded *config.Loaded) error {
	answer := struct {
		Settings []ShownSetting `json:"settings"`
		Warnings []string       `json:"warnings"`
	}{Warnings: append([]string{}, loaded.Warnings...)}
	for _, s := range loaded.Show() {
		answer.Settings = append(answer.Settings, ShownSetting{s.Name, s.Plain, s.Origin.From, s.Origin.Name})
	}
	body, err := json.MarshalIndent(answer, "", "  ")
	if err != nil {
		return fmt.Errorf("encode settings: %w", err)
	}
	return a.Sayf("%s", body)
}
