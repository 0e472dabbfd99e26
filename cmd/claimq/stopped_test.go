package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/claimq/claimq/cmd/claimq/claimqtest"
	"github.com/claimq/claimq/cmd/claimq/term"
)

// A command that reads endless input ends at the first signal and says what was not sent.
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
			// This is more than a pipe holds, so once it is written the command reads.
			if _, err := in.Write([]byte("\n{}\n" + strings.Repeat(" ", 1<<17))); err != nil {
				t.Error(err)
			}
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Error(err)
			}
			_ = cmd.Wait() // the exit code is checked below
			if code := cmd.ProcessState.ExitCode(); code != term.ExitUnknown || !strings.Contains(stderr.String(), want) {
				t.Errorf("exit code %d: %s", code, stderr.String())
			}
		})
	}
}

// A wait for the end of a task says that it was stopped, whichever signal it was.
func TestSubmit_stoppedWhileItWaits(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	task := `{"success":true,"created":true,"task":` + cliTask + `}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, task)
		if r.Method == http.MethodGet { // the task has not ended, so the command looks again after a pause
			time.AfterFunc(10*time.Millisecond, func() { stop(errors.New("interrupt signal received")) })
		}
	}))
	defer server.Close()
	var stderr bytes.Buffer
	a := &term.App{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: &stderr}
	code := run(ctx, a, []string{"submit", "mail", "--wait", "1h", "--endpoint", server.URL})
	if want := "claimq: stopped before there was an answer\n"; code != term.ExitUnknown || stderr.String() != want {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
}
