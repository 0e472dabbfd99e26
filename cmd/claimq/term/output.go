package term

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// ShowJSON prints v as one line of JSON.
func ShowJSON(w io.Writer, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", SafeJSON(text))
	return err
}

// SafeJSON returns the same JSON without characters that act on a terminal. Text from others may contain 8-bit
// control characters and characters that change the text direction. These occur only inside strings, so each becomes
// its escape.
func SafeJSON(text []byte) []byte {
	if utf8.Valid(text) && bytes.IndexFunc(text, acts) < 0 {
		return text
	}
	safe := make([]byte, 0, len(text)+64)
	for _, r := range string(text) {
		if acts(r) {
			safe = fmt.Appendf(safe, `\u%04x`, r)
		} else {
			safe = utf8.AppendRune(safe, r)
		}
	}
	return safe
}

// acts reports whether a character of JSON has an effect on a terminal other than showing itself.
func acts(r rune) bool { return 0x7f <= r && r <= 0x9f || unicode.Is(unicode.Bidi_Control, r) }

// Sayf prints a line.
func (a *App) Sayf(format string, values ...any) error {
	_, err := fmt.Fprintln(a.Stdout, fmt.Sprintf(format, values...))
	return err
}

// Notef prints a line to standard error, apart from the command's output.
func (a *App) Notef(format string, values ...any) error {
	_, err := fmt.Fprintln(a.Stderr, fmt.Sprintf(format, values...))
	return err
}

// OutputFlag is --output of a command that asks no server.
type OutputFlag struct{ Output string }

// Add adds the flag to cmd and makes cmd refuse invalid values.
func (o *OutputFlag) Add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.Output, "output", "table", "table, json")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if o.Output != "table" && o.Output != "json" {
			return UsageErrorf("--output is %q: it must be one of table, json", o.Output)
		}
		return nil
	}
}
