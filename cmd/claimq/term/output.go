package term

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// ShowJSON prints v as one line of JSON.
func ShowJSON(w io.Writer, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", text)
	return err
}

// Sayf prints a line.
func (a *App) Sayf(format string, values ...any) error {
	_, err := fmt.Fprintln(a.Stdout, fmt.Sprintf(format, values...))
	return err
}

// Notef prints a line beside what a command prints: to standard error.
func (a *App) Notef(format string, values ...any) error {
	_, err := fmt.Fprintln(a.Stderr, fmt.Sprintf(format, values...))
	return err
}

// OutputFlag is --output of a command that asks no server.
type OutputFlag struct{ Output string }

// Add gives cmd the flag, and has cmd refuse what that cannot be.
func (o *OutputFlag) Add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.Output, "output", "table", "table, json")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if o.Output != "table" && o.Output != "json" {
			return UsageErrorf("--output is %q: it must be one of table, json", o.Output)
		}
		return nil
	}
}
