package term

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// A command takes the arguments of its usage line.
func TestArguments(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		use, args string
		want      string // the start of the error; "": none
	}{
		{"list", "", ""},
		{"list", "x", `"x" is one argument too many`},
		{"get ID", "", "ID is missing"},
		{"get ID", "1", ""},
		{"get ID", "1 2", `"2" is one argument too many`},
		{"set NAME TYPE [PARAMS | @FILE | -]", "a", "TYPE is missing"},
		{"set NAME TYPE [PARAMS | @FILE | -]", "a b", ""},
		{"set NAME TYPE [PARAMS | @FILE | -]", "a b c", ""},
		{"set NAME TYPE [PARAMS | @FILE | -]", "a b c d", `"d" is one argument too many`},
		{"batch FILE | -", "", "FILE is missing"},
		{"batch FILE | -", "f g", `"g" is one argument too many`},
		{"get ID | --key KEY", "1 2", `"2" is one argument too many`},
		{"recover --data-dir DIR", "d", `"d" is one argument too many`},
		{"upgrade [--finalize]", "x", `"x" is one argument too many`},
		{"work --type TYPE [flags] -- COMMAND [ARG...]", "", "COMMAND is missing"},
		{"work --type TYPE [flags] -- COMMAND [ARG...]", "a b c d e", ""},
	} {
		err := Arguments(&cobra.Command{Use: c.use, Run: func(*cobra.Command, []string) {}}, strings.Fields(c.args))
		if got := ""; err != nil || c.want != "" {
			if err != nil {
				got, _, _ = strings.Cut(err.Error(), "\nUsage: "+strings.Fields(c.use)[0])
			}
			if got != c.want {
				t.Errorf("%s with %q: %q, want %q", c.use, c.args, got, c.want)
			}
		}
	}
}
