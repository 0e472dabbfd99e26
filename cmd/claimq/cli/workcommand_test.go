package cli

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/claimq/claimq/client"
)

// A worker whose key may not read the steps that its step depends on runs the command all the same.
func TestRunner_environOf_unreadable(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]struct {
		status int
		body   string
	}{
		"of another type": {http.StatusOK, `{"success":true,"tasks":[]}`},
		"forbidden":       {http.StatusForbidden, `{"success":false,"code":"forbidden","error":"no","message":"no"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(answer.status)
				_, _ = w.Write([]byte(answer.body))
			}))
			defer s.Close()
			c, err := client.New(client.Config{Endpoints: []string{s.URL}})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			job := &client.Job[[]byte]{Task: &client.Task{ID: "3", ParentID: "1", StepName: "b", DependsOn: []string{"a"}}}
			environ, files, err := (&runner{c: c}).environOf(t.Context(), job)
			if err != nil {
				t.Fatal(err)
			}
			files.remove()
			if !slices.Contains(environ, "CLAIMQ_STEP=b") || strings.Contains(strings.Join(environ, " "), dependenciesVariable) {
				t.Errorf("its environment is %q", environ)
			}
		})
	}
}

// The command of a task that waited for a signal gets what the task was handed.
func TestRunner_environOf_signal(t *testing.T) {
	t.Parallel()
	for signal, want := range map[string]bool{`{"ok":true}`: true, "": false} {
		job := &client.Job[[]byte]{Task: &client.Task{ID: "3", Signalled: true, Signal: []byte(signal)}}
		if signal == "" {
			job.Task.Signal = nil
		}
		environ, _, err := (&runner{environ: commandEnviron([]string{signalVariable + "=old"}, nil, "w")}).environOf(t.Context(), job)
		if err != nil {
			t.Fatal(err)
		}
		if all := strings.Join(environ, " "); slices.Contains(environ, `CLAIMQ_SIGNAL={"ok":true}`) != want || strings.Contains(all, "old") || strings.Contains(all, signalVariable) != want {
			t.Errorf("%q: its environment is %q", signal, environ)
		}
	}
}
