package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/cmd/claimq/term"
)

// Each field of a task comes from a flag of `claimq submit`, and an error about the field names the flag. `claimq schedule
// set` shows the flag if the task of a schedule can have the field.
func TestSubmit_hasAFlagForEachField(t *testing.T) {
	t.Parallel()
	otherwise := []string{"task_type", "params", "payload", "traceparent", "steps", "finalize", "on_step_failure"} // arguments, --steps, or not from here
	flags := map[string]string{
		"attributes": `--attributes {"a":1}`, "priority": "--priority 1", "max_attempts": "--max-attempts 2", "idempotency_key": "--key k", "unique": "--unique active",
		"unique_ms": "--unique-for 1m", "run_at": "--run-at 2026-01-02T03:04:05Z", "delay_ms": "--delay 1s", "expires_at": "--expires-at 2026-01-02T03:04:05Z",
		"expires_again": "--expires-again --expires-at 2026-01-02T03:04:05Z", "wait_for_signal_ms": "--wait-for-signal 1h", "lease_ms": "--lease 1s", "backoff": "--backoff 1s",
		"retention_ms": "--retention 1h", "labels": "--label a=b", "group": "--group g", "share_key": "--share-key s",
	}
	set, _, err := newTree().Find([]string{"schedule", "set"})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../api/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var described struct {
		Components struct {
			Schemas map[string]struct{ Properties map[string]yaml.Node }
		}
	}
	if err := yaml.Unmarshal(text, &described); err != nil {
		t.Fatal(err)
	}
	for field := range reflect.TypeFor[wire.NewTask]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if slices.Contains(otherwise, name) {
			continue
		}
		args := strings.Fields(flags[name])
		if len(args) == 0 {
			t.Errorf("no flag of submit sends %s: name one here", name)
			continue
		}
		api := &fakeAPI{answers: map[string]string{"POST /api/tasks": fmt.Sprintf(`400 {"success":false,"error":"Invalid %s: no","code":"invalid_task","message":"no","field":%[1]q}`, name)}}
		server := httptest.NewServer(api)
		var stderr bytes.Buffer
		code := run(t.Context(), &term.App{Stdin: strings.NewReader(""), Stdout: &stderr, Stderr: &stderr}, append([]string{"submit", "mail", "--endpoint", server.URL}, args...))
		server.Close()
		if code != term.ExitUsage || !strings.Contains(stderr.String(), "Invalid "+args[0]+": no") {
			t.Errorf("%s: exit code %d, %s", name, code, stderr.String())
			continue
		}
		var sent map[string]json.RawMessage
		if err := json.Unmarshal([]byte(strings.TrimPrefix(api.requests()[0], "POST /api/tasks ")), &sent); err != nil || sent[name] == nil {
			t.Errorf("%s: sent is %s, %v", name, api.requests()[0], err)
		}
		_, can := described.Components.Schemas["ScheduledTask"].Properties[name]
		if flag := set.Flags().Lookup(args[0][2:]); flag.Hidden == can {
			t.Errorf("schedule set hides %s: %v, a schedule's task can have %s: %v", args[0], flag.Hidden, name, can)
		}
	}
}
