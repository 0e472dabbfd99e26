package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/client/clienttest"
	"github.com/claimq/claimq/cmd/claimq/term"
)

const applied = `
defaults:
  lease: 45s
  backoff: {initial: 2s}
types:
  mail:
    max_claimed: 10
    rate_limit: 2.50
    lease: 10m
    retention: forever
    backoff: &slow {initial: 1s, max: 1h, factor: 2, jitter: 0.2}
  404: {retention: 0}
schedules:
  nightly:
    cron: "30 2 * * *"
    timezone: Europe/Prague
    task:
      task_type: report
      params: {since: 2026-01-02, big: 12345678901234567890, all: true, b: [1, null, ~]}
      labels: {managed-by: ops}
      backoff: *slow
      retention: 7d
  poll:
    every: 30s
    paused: true
    task: {task_type: fetch, labels: {managed-by: ops}}
`

// A file is applied once: the second time nothing differs. What the file does not say, and pauses, stay; a schedule
// with the label of --prune that the file no longer has is deleted.
func TestApply(t *testing.T) {
	t.Parallel()
	s := clienttest.New(t)
	say := func(stdin string, args ...string) string {
		var out bytes.Buffer
		a := &term.App{Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &out}
		code := run(t.Context(), a, append(args, "--endpoint", s.URL()))
		return strings.TrimPrefix(out.String(), "\n") + "exit " + string(rune('0'+code)) + "\n"
	}
	isDone := func(got string) {
		t.Helper()
		if !strings.HasSuffix(got, "exit 0\n") {
			t.Fatal(got)
		}
	}
	same := func(got, want string) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	}
	isDone(say("", "schedule", "set", "manual", "other", "--every", "1h"))
	isDone(say("", "schedule", "set", "old", "other", "--every", "1h", "--label", "managed-by=ops"))
	fresh := `defaults: backoff: {"initial_ms":1000,"max_ms":3600000,"factor":2,"jitter":0.2} -> {"initial_ms":2000}
defaults: lease: 30s -> 45s
type mail: backoff: none -> {"factor":2,"initial_ms":1000,"jitter":0.2,"max_ms":3600000}
type mail: lease: none -> 10m00s
type mail: max_claimed: none -> 10
type mail: rate_limit: none -> 2.50
type mail: retention: none -> until it is deleted
type 404: retention: none -> gone at its end
schedule nightly: create
schedule poll: create
schedule old: delete
`
	same(say(applied, "apply", "-", "--dry-run", "--prune", "managed-by=ops"), fresh+"claimq: the cluster differs from the file in 6 objects\nexit 5\n")
	path := filepath.Join(t.TempDir(), "claimq.yaml")
	if err := os.WriteFile(path, []byte(applied), 0o600); err != nil {
		t.Fatal(err)
	}
	same(say("", "apply", path, "--prune", "managed-by=ops"), fresh+"exit 0\n")
	unchanged := "defaults: unchanged\ntype mail: unchanged\ntype 404: unchanged\nschedule nightly: unchanged\nschedule poll: unchanged\nexit 0\n"
	same(say("", "apply", path, "--dry-run", "--prune", "managed-by=ops"), unchanged)
	params := `"params":{"since":"2026-01-02","big":12345678901234567890,"all":true,"b":[1,null,null]}`
	if got := say("", "schedule", "get", "nightly", "--output", "json"); !strings.Contains(got, params) {
		t.Errorf("the params are not as they were written: %s", got)
	}

	isDone(say("", "type", "set", "mail", "--pause", "--max-claimed", "11", "--max-attempts", "4"))
	isDone(say("", "schedule", "set", "nightly", "report", "--cron", "@daily", "--paused", "--overlap", "allow", "--priority", "3"))
	drifted := `defaults: unchanged
type mail: max_attempts: 4 -> none
type mail: max_claimed: 11 -> 10
type 404: unchanged
schedule nightly: cron: "@daily" -> "30 2 * * *"
schedule nightly: overlap: "allow" -> none
schedule nightly: task.backoff: none -> {"factor":2,"initial_ms":1000,"jitter":0.2,"max_ms":3600000}
schedule nightly: task.labels: none -> {"managed-by":"ops"}
schedule nightly: task.params: {} -> {"since":"2026-01-02","big":12345678901234567890,"all":true…
schedule nightly: task.priority: 3 -> none
schedule nightly: task.retention: none -> 7d00h
schedule nightly: timezone: "UTC" -> "Europe/Prague"
schedule poll: unchanged
exit 0
`
	same(say("", "apply", path), drifted)
	same(say("", "apply", path), unchanged)
	same(say("types: {turns: {fair: true, max_claimed_per_key: 2}}", "apply", "-"), "type turns: fair: false -> true\ntype turns: max_claimed_per_key: none -> 2\nexit 0\n")
	same(say("types: {turns: {}}", "apply", "-"), "type turns: fair: true -> none\ntype turns: max_claimed_per_key: 2 -> none\nexit 0\n")
	same(say("types: {turns: {}}", "apply", "-"), "type turns: unchanged\nexit 0\n")
	testApplyShares(say, same, isDone)
	for _, name := range []string{"type", "schedule"} {
		if got := say("", name, map[string]string{"type": "show", "schedule": "get"}[name], map[string]string{"type": "mail", "schedule": "nightly"}[name], "--output", "json"); !strings.Contains(got, `"paused":true`) {
			t.Errorf("the pause has ended: %s", got)
		}
	}
	same(say("types: {mail: {lease: 9m, paused: false}}", "apply", "-", "--output", "json"), `{"object":"type","name":"mail","action":"change","changes":`+
		`{"backoff":{"from":{"initial_ms":1000,"max_ms":3600000,"factor":2,"jitter":0.2},"to":null},"lease_ms":{"from":600000,"to":540000},"max_claimed":{"from":10,"to":null},`+
		`"paused":{"from":true,"to":false},"rate_limit":{"from":2.5,"to":null},"retention_ms":{"from":-1,"to":null}}}`+"\nexit 0\n")
}

// Shares are settings of their own: the file's are made the same but for their pause, and the others of its types go with
// --prune-shares, but for their pause.
func testApplyShares(say func(stdin string, args ...string) string, same func(got, want string), isDone func(got string)) {
	const file = "shares:\n  turns:\n    acme: {weight: 300, max_claimed: 2}\n    \"a b/c\": {rate_limit: 0.50, paused: true}\n    plain: {weight: 100}\n"
	isDone(say("", "share", "set", "turns", "acme", "--paused", "--max-claimed", "9", "--rate-limit", "3"))
	isDone(say("", "share", "set", "turns", "old", "--weight", "7"))
	isDone(say("", "share", "set", "turns", "night", "--paused", "--weight", "7"))
	isDone(say("", "share", "set", "other", "theirs", "--weight", "7"))
	isDone(say("", "submit", "turns", "1", "--share-key", "busy"))
	declared := `share turns acme: max_claimed: 9 -> 2
share turns acme: rate_limit: 3 -> none
share turns acme: weight: none -> 300
share turns a b/c: paused: none -> true
share turns a b/c: rate_limit: none -> 0.50
share turns plain: unchanged
`
	pruned := `share turns night: weight: 7 -> none
share turns old: delete
`
	same(say(file, "apply", "-", "--dry-run", "--prune-shares"), declared+pruned+"claimq: the cluster differs from the file in 4 objects\nexit 5\n")
	same(say(file, "apply", "-"), declared+"exit 0\n")
	unchanged := "share turns acme: unchanged\nshare turns a b/c: unchanged\nshare turns plain: unchanged\n"
	same(say(file, "apply", "-", "--prune-shares"), unchanged+pruned+"exit 0\n")
	same(say(file, "apply", "-", "--prune-shares", "--dry-run"), unchanged+"exit 0\n")
	same(say("", "share", "list", "turns", "--settings"), `SHARE KEY  PENDING  CLAIMED  OLDEST  STATE   MAX CLAIMED  WEIGHT  RATE/S
a b/c      0        0        -       paused  -            100     0.5
acme       0        0        -       paused  2            300     -
night      0        0        -       paused  -            100     -
exit 0
`)
	same(say("shares: {other: {}}", "apply", "-", "--prune-shares", "--output", "json"), `{"object":"share","name":"other","share_key":"theirs","action":"delete"}`+"\nexit 0\n")
	same(say("shares: {mail: {a: {weight: 0}}}", "apply", "-"), "claimq: share mail a: Invalid weight: must be an integer from 1 to 10000 (invalid_request)\nCorrect it and repeat the command\nexit 2\n")
	same(say("types: {mail: {}}", "apply", "-", "--prune-shares"), "claimq: --prune-shares: the file has no types under shares\nexit 2\n")
}

// A file that is wrong is refused with its line and its field, and changes nothing.
func TestApply_wrongFiles(t *testing.T) {
	t.Parallel()
	s := clienttest.New(t)
	for _, c := range []struct{ file, want string }{
		{"", "it is empty"},
		{"types: [", "line 1"},
		{"a: 1", `line 1: "a" is unknown: give defaults, types, shares or schedules`},
		{"types: {}\n---\ntypes: {}", "several documents"},
		{"types: 5", "line 1: types must be a mapping"},
		{"types:\n  mail:\n    leese: 5s", "line 3: types.mail.leese is unknown: there are backoff, dead_letter, delay, fair, lease, "},
		{"types:\n  mail:\n    lease_ms: 5", "line 3: types.mail.lease_ms is unknown: there are backoff, dead_letter, delay, fair, lease, "},
		{"types:\n  mail:\n    lease: 5", `line 3: types.mail.lease is "5": it must be a time as 30s, 2m or 7d`},
		{"types:\n  mail:\n    lease: [5s]", "line 3: types.mail.lease is"},
		{"types:\n  mail:\n    retention: soon", "0 (gone at once) or forever"},
		{"types:\n  mail: {backoff: {max: -1s}}", "line 2: types.mail.backoff.max is"},
		{"types:\n  mail: {backoff: 7}", "line 2: types.mail.backoff must be a mapping"},
		{"types:\n  mail: {}\n  mail: {}", `line 3: "mail" is in types twice`},
		{"defaults:\n  lease: null", "line 1: defaults.lease must have a value"},
		{"shares:\n  mail:\n    acme: {wait: 3}", "line 3: shares.mail.acme.wait is unknown: there are max_claimed, paused, rate_limit, weight"},
		{"shares:\n  mail: 5", "line 2: shares.mail must be a mapping"},
		{"schedules:\n  a:\n    task: {steps: {}}", "line 3: schedules.a.task.steps must be a list"},
		{"schedules:\n  a:\n    task: {params: {x: .nan}}", "line 3: schedules.a.task.params.x is .nan, which JSON does not have"},
		{"schedules:\n  a:\n    task: {params: {<<: {b: 1}}}", "line 3: merge keys (<<) are not supported"},
		{"schedules:\n  a:\n    task: {params: {[1]: 1}}", "line 3: a key of schedules.a.task.params must be a text"},
		{"schedules:\n  a:\n    every: 5s\n    cron: \"@daily\"\n    task: {params: 1}", "schedule a: "}, // by the server
	} {
		var out bytes.Buffer
		a := &term.App{Stdin: strings.NewReader(c.file), Stdout: &out, Stderr: &out}
		code := run(t.Context(), a, []string{"apply", "-", "--endpoint", s.URL()})
		if !strings.Contains(out.String(), c.want) || code == 0 || code > 2 {
			t.Errorf("%q: exit code %d, %s\nwant %s", c.file, code, out.String(), c.want)
		}
	}
	var out bytes.Buffer
	a := &term.App{Stdin: strings.NewReader("schedules: {a: {every: 5s, task: {task_type: b}}}"), Stdout: &out, Stderr: &out}
	code := run(t.Context(), a, []string{"apply", "-", "--prune", "a=b", "--endpoint", s.URL()})
	if want := `schedule "a" does not have the label a=b`; code != 2 || !strings.Contains(out.String(), want) {
		t.Errorf("exit code %d, %s\nwant %s", code, out.String(), want)
	}
}

// The steps of a schedule's task are compared one by one, and what the server leaves out is no difference.
func TestApply_steps(t *testing.T) {
	t.Parallel()
	s := clienttest.New(t)
	say := func(file string, flags ...string) string {
		var out bytes.Buffer
		a := &term.App{Stdin: strings.NewReader(file), Stdout: &out, Stderr: &out}
		code := run(t.Context(), a, append([]string{"apply", "-", "--endpoint", s.URL()}, flags...))
		return out.String() + "exit " + string(rune('0'+code)) + "\n"
	}
	const file = `
schedules:
  nightly:
    every: 1h
    task:
      task_type: report
      finalize: auto
      steps:
        - {step: sum, params: 12345678901234567890, depends_on: [mail, get], task_type: default}
        - {step: get, params: {a: 1}, delay: 10s, backoff: {initial: 1s}}
        - {step: mail, params: {}, wait_for_signal: 1d}
`
	const same = "schedule nightly: unchanged\nexit 0\n"
	changed := strings.Replace(strings.Replace(file, "10s", "20s", 1), "{}", "[]", 1)
	fewer := strings.Replace(file, "        - {step: mail, params: {}, wait_for_signal: 1d}\n", "", 1)
	fewer = strings.Replace(fewer, "[mail, get]", "[get]", 1)
	for _, c := range []struct{ file, want string }{
		{file, "schedule nightly: create\nexit 0\n"},
		{file, same},
		{strings.Replace(file, "[mail, get]", "[get, mail]", 1), same},
		{changed, "schedule nightly: task.steps[1].delay: 10s -> 20s\nschedule nightly: task.steps[2].params: {} -> []\nexit 0\n"},
		{changed, same},
		{strings.Replace(changed, "depends_on: [mail, get], ", "", 1), "schedule nightly: task.steps[0].depends_on: [\"get\",\"mail\"] -> none\nexit 0\n"},
		{fewer, `schedule nightly: task.steps: [{"step":"sum","params":12345678901234567890},{"step":"get"… -> [{"depends_on":["get"],"params":12345678901234567890,"step"…` + "\nexit 0\n"},
		{strings.Replace(fewer, "step: get", "step: sum", 1), "claimq: schedule nightly: "},
	} {
		if got := say(c.file); got != c.want && !(strings.HasSuffix(c.want, ": ") && strings.HasPrefix(got, c.want)) {
			t.Errorf("%s\ngot\n%swant\n%s", c.file, got, c.want)
		}
	}
}

// The file in docs/operations.md is applied, and then nothing differs.
func TestApply_documented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, file, _ := strings.Cut(string(page), "`claimq apply FILE`")
	_, file, _ = strings.Cut(file, "```yaml\n")
	file, _, _ = strings.Cut(file, "```")
	s := clienttest.New(t)
	for _, args := range [][]string{{"apply", "-"}, {"apply", "-", "--dry-run", "--prune", "managed-by=ops"}} {
		var out bytes.Buffer
		a := &term.App{Stdin: strings.NewReader(file), Stdout: &out, Stderr: &out}
		if code := run(t.Context(), a, append(args, "--endpoint", s.URL())); code != 0 || !strings.Contains(out.String(), "schedule nightly: ") {
			t.Errorf("%v: exit code %d, %s", args, code, out.String())
		}
	}
}
