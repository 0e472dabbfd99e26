package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/cmd/claimq/term"
)

// The tab key offers words, folders and files where they are taken, and asks no server.
func TestCompletion(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]string{
		"get |":                          ":4",
		"list |":                         ":4",
		"list --limit |":                 ":4",
		"list --output t|":               "table json :4",
		"claim --output |":               "table json env :4",
		"key generate --role r|":         "reader producer worker operator :4",
		"submit mail --unique |":         "exists active window :4",
		"server --data-dir |":            ":16",
		"get --ca-file |":                ":0",
		"snapshot restore |":             ":0",
		"work --type mail -- |":          ":0",
		"get --endpoint nonsense 1|":     ":4",
		"completion z|":                  "zsh :4",
		"submit mail --steps f --final|": "--finalize :4",
	} {
		var stdout bytes.Buffer
		a := &term.App{Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: io.Discard}
		args := append([]string{cobra.ShellCompRequestCmd}, strings.Split(strings.TrimSuffix(words, "|"), " ")...)
		if code := run(t.Context(), a, args); code != term.ExitDone {
			t.Errorf("%s: exit code %d", words, code)
		}
		var got []string
		for line := range strings.Lines(strings.TrimSpace(stdout.String())) {
			value, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
			got = append(got, value)
		}
		if line := strings.Join(got, " "); line != want {
			t.Errorf("%s: it offers %s, want %s", words, line, want)
		}
	}
}

// Each flag with words belongs to a command.
func TestFlagWords(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	term.EachCommand(newTree(), func(cmd *cobra.Command, path string) {
		for _, f := range term.FlagsOf(cmd) {
			known[path+" --"+f.Name], known[f.Name] = true, true
		}
	})
	for name := range flagWords {
		if !known[name] {
			t.Errorf("no command has --%s", name)
		}
	}
}
