package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/claimq/claimq/cmd/claimq/term"
)

// If the server does not answer, a user at a terminal sees what is tried and until when. A program that reads the
// output does not.
func TestCommand_noServer(t *testing.T) {
	t.Parallel()
	for name, attended := range map[string]bool{"at a terminal": true, "in a script": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			a := &term.App{Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr, Interactive: attended}
			code := run(t.Context(), a, []string{"submit", "mail", "--endpoint", "http://127.0.0.1:1", "--timeout", "4s"})
			if code != term.ExitUnknown || stdout.Len() > 0 {
				t.Errorf("exit code %d, printed %q", code, stdout.String())
			}
			first, _, _ := strings.Cut(stderr.String(), "\n")
			if told := strings.HasPrefix(first, "claimq: no answer yet: ") && strings.HasSuffix(first, "(--timeout 4s)") && strings.Contains(first, "; trying until "); told != attended {
				t.Errorf("it printed %q", stderr.String())
			}
			if got := strings.Count(stderr.String(), "trying until"); got > 1 {
				t.Errorf("it says so %d times", got)
			}
		})
	}
}

// Commands that only read give up sooner than commands that change something.
func TestCommand_timeouts(t *testing.T) {
	t.Parallel()
	root := newRootCommand(&term.App{})
	for command, want := range map[string]string{"stats": "5s", "get": "5s", "list": "5s", "why": "5s", "failures": "5s", "history": "5s", "submit": "30s", "complete": "30s"} {
		cmd, _, err := root.Find([]string{command})
		if err != nil {
			t.Fatal(err)
		}
		if got := cmd.Flags().Lookup("timeout").DefValue; got != want {
			t.Errorf("%s: %s, want %s", command, got, want)
		}
	}
}
