package main

import (
	"bytes"
	"context"
	"strings"
	"syscall"
	"testing"

	"github.com/claimq/claimq/cmd/claimq/claimqtest"
	"github.com/claimq/claimq/cmd/claimq/term"
)

// A command that reads what goes on for ever ends at the first signal, and says what was
// not sent.
func TestCommand_stoppedWhileItReads(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"submit mail -":         "PARAMS: stopped before",
		"submit mail --steps -": "--steps: stopped before",
		"submit --file -":       "the lines from 2 on are not submitted",
		"batch -":               "FILE: stopped before",
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), claimqtest.Patience)
			defer cancel()
			cmd := claimq(ctx, strings.Fields(args+" --endpoint http://127.0.0.1:1")...)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			// More than a pipe holds: once it is written the command reads.
			if _, err := in.Write([]byte("\n{}\n" + strings.Repeat(" ", 1<<17))); err != nil {
				t.Error(err)
			}
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Error(err)
			}
			_ = cmd.Wait() // by its exit code
			if code := cmd.ProcessState.ExitCode(); code != term.ExitUnknown || !strings.Contains(stderr.String(), want) {
				t.Errorf("exit code %d: %s", code, stderr.String())
			}
		})
	}
}
