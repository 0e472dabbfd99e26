package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/claimq/claimq/cmd/claimq/term"
)

// If the answer to a delete is lost, the repeat finds no task. The delete counts as done.
func TestDelete_repeated(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) == 1 {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"success":false,"error":"Task not found","code":"task_not_found","message":"Check the id"}`))
	}))
	defer server.Close()
	var stdout, stderr bytes.Buffer
	a := &term.App{Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr}
	code := run(t.Context(), a, []string{"delete", "17", "--endpoint", server.URL})
	if code != term.ExitDone || stdout.String() != "task 17 is deleted\n" || calls.Load() != 2 {
		t.Errorf("exit code %d after %d calls: %s%s", code, calls.Load(), stdout.String(), stderr.String())
	}
}
