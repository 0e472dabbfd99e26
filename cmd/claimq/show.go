package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client"
)

// valueWidth is how many characters of a value are shown on a terminal.
const valueWidth = 1_000

// printable makes s safe for a terminal: what others wrote may hold control
// characters. Those are shown as Go writes them in a string.
func printable(s string) string {
	if utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return s
	}
	q := strconv.Quote(s)
	return strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
}

// cell is s printable, and - for nothing.
func cell(s string) string {
	if s == "" {
		return "-"
	}
	return printable(s)
}

// text is s printable, and on a terminal no longer than valueWidth.
func (a *app) text(s string) string {
	if a.width == 0 {
		return printable(s)
	}
	return cutTo(printable(s), valueWidth)
}

// exactTime is how times are shown, in UTC.
const exactTime = "2006-01-02 15:04:05.000"

// showTime is a time as exact as the server has it, and how long ago it was.
func (a *app) showTime(t time.Time) string {
	ago := a.clock().Sub(t)
	if ago < 0 {
		return t.UTC().Format(exactTime) + " UTC (in " + showDuration(-ago) + ")"
	}
	return t.UTC().Format(exactTime) + " UTC (" + showDuration(ago) + " ago)"
}

// showMS is showDuration of milliseconds.
func showMS(ms int64) string { return showDuration(time.Duration(ms) * time.Millisecond) }

// showDuration is d to the two greatest of its units.
func showDuration(d time.Duration) string {
	day := 24 * time.Hour
	switch {
	case d < time.Minute:
		return d.Truncate(time.Millisecond).String()
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < day:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%02dh", d/day, d%day/time.Hour)
}

// fields collects the lines of a thing that is shown one field a line.
type fields [][]string

func (f *fields) add(name, value string) { *f = append(*f, []string{name, value}) }

// addSome adds the field if there is a value.
func (f *fields) addSome(name, value string) {
	if value != "" {
		f.add(name, printable(value))
	}
}

// showTask prints a task, one field a line.
func (a *app) showTask(t *wire.Task) error {
	var f fields
	f.add("id", strconv.FormatUint(t.ID, 10))
	f.add("type", printable(t.TaskType))
	f.add("status", printable(t.Status))
	if t.CancelRequested && t.Status == "claimed" {
		f.add("cancel", "requested: its worker learns of it at its next extend")
	}
	if t.CancelRequested && t.Status == "running" {
		f.add("cancel", "requested: it ends when no step is claimed any more")
	}
	if t.RunAt != nil && t.Status == "scheduled" {
		f.add("runs at", a.showTime(*t.RunAt))
	}
	addSteps(&f, t)
	a.addIdentity(&f, t)
	a.addClaim(&f, t)
	a.addTimes(&f, t)
	f.addSome("error", t.Error)
	f.addSome("params", a.value(t.Params, t.Payload))
	f.addSome("progress", a.value(t.Progress, nil))
	f.addSome("result", a.value(t.Result, t.ResultPayload))
	if err := columns(a.stdout, f); err != nil {
		return err
	}
	return a.showAttempts(t.AttemptsLog)
}

// addSteps adds what makes the task a parent or a step.
func addSteps(f *fields, t *wire.Task) {
	if t.ParentID != 0 {
		f.add("step", fmt.Sprintf("%s of task %d", printable(t.Step), t.ParentID))
		f.addSome("depends on", strings.Join(t.DependsOn, ", "))
	}
	if len(t.Steps) > 0 {
		f.add("steps", fmt.Sprintf("%s ('claimq steps %d' draws them)", countSteps(t.Steps), t.ID))
	}
	switch t.Finalize {
	case "":
	case client.FinalizeAuto:
		f.add("finalize", "auto: it ends with its last step")
	case client.FinalizeClaim:
		f.add("finalize", "claim: a processor ends it")
	default:
		f.addSome("finalize", t.Finalize)
	}
	switch t.OnStepFailure {
	case "":
	case client.FailOnStepFailure:
		f.add("step fails", "fail: the other steps are cancelled")
	case client.ContinueOnStepFailure:
		f.add("step fails", "continue: those that depend on it are cancelled")
	default:
		f.addSome("step fails", t.OnStepFailure)
	}
}

// addIdentity adds what the task was submitted with.
func (a *app) addIdentity(f *fields, t *wire.Task) {
	key := t.IdempotencyKey
	if t.Unique == "active" {
		key += " (until it ends)"
	}
	f.addSome("key", key)
	f.addSome("group", t.Group)
	f.addSome("labels", showLabels(t.Labels))
	f.add("priority", strconv.Itoa(int(t.Priority)))
	if t.Finalize == "" { // nobody claims a task with steps
		f.add("attempts", attemptsOf(t))
	}
	if t.LeaseMS > 0 {
		f.add("lease", showMS(t.LeaseMS))
	}
	if t.Backoff != nil {
		f.add("backoff", showBackoff(t.Backoff))
	}
	if t.RetentionMS != nil {
		f.add("retention", showRetention(*t.RetentionMS))
	}
}

// addClaim adds who holds or held the task.
func (a *app) addClaim(f *fields, t *wire.Task) {
	if t.WorkerID != nil {
		f.add("worker", printable(*t.WorkerID))
	}
	if t.ClaimToken != nil {
		f.add("token", strconv.FormatUint(*t.ClaimToken, 10))
	}
	if t.LeaseRemainingMS != nil {
		f.add("lease left", showMS(*t.LeaseRemainingMS))
	}
}

func (a *app) addTimes(f *fields, t *wire.Task) {
	f.add("created", a.showTime(t.CreatedAt))
	if t.ExpiresAt != nil {
		f.add("expires", a.showTime(*t.ExpiresAt))
	}
	if t.ClaimedAt != nil {
		f.add("claimed", a.showTime(*t.ClaimedAt))
	}
	if t.CompletedAt != nil {
		f.add("ended", a.showTime(*t.CompletedAt))
	}
}

// showLabels is labels on one line, by name.
func showLabels(labels wire.Labels) string {
	names := slices.Sorted(maps.Keys(labels))
	for i, name := range names {
		names[i] = name + "=" + labels[name]
	}
	return strings.Join(names, " ")
}

func showBackoff(b *wire.Backoff) string {
	text := fmt.Sprintf("%s, then %g times as long, at most %s", showMS(b.InitialMS), b.Factor, showMS(b.MaxMS))
	if b.Jitter > 0 {
		text += fmt.Sprintf(", less up to %g %%", b.Jitter*100)
	}
	return text
}

func showRetention(ms int64) string {
	switch {
	case ms < 0:
		return "until it is deleted"
	case ms == 0:
		return "gone at its end"
	}
	return showMS(ms)
}

func (a *app) showAttempts(log []wire.Attempt) error {
	if len(log) == 0 {
		return nil
	}
	rows := [][]string{{"TOKEN", "WORKER", "CLAIMED (UTC)", "LASTED", "OUTCOME", "ERROR"}}
	for _, at := range log {
		lasted, outcome := "-", ""
		if at.EndedAt != nil {
			lasted = showDuration(at.EndedAt.Sub(at.ClaimedAt))
		}
		if at.Outcome != nil {
			outcome = *at.Outcome
		}
		rows = append(rows, []string{
			strconv.FormatUint(at.ClaimToken, 10), cell(at.WorkerID), at.ClaimedAt.UTC().Format(exactTime),
			lasted, cell(outcome), cell(at.Error),
		})
	}
	if _, err := fmt.Fprintln(a.stdout); err != nil {
		return err
	}
	return a.table(rows, "TOKEN")
}

func attemptsOf(t *wire.Task) string {
	if t.MaxAttempts == 0 {
		return fmt.Sprintf("%d, no limit", t.Attempts)
	}
	return fmt.Sprintf("%d of %d", t.Attempts, t.MaxAttempts)
}

// value is params or a result, and on a terminal not too much of it.
func (a *app) value(asJSON json.RawMessage, asBytes []byte) string {
	text := showValue(asJSON, asBytes)
	if a.width == 0 || displayWidth(text) <= valueWidth {
		return text
	}
	return cutTo(text, valueWidth) + fmt.Sprintf(" (%d bytes; --output json shows all)", len(asJSON))
}

// showValue is params or a result on one line.
func showValue(asJSON json.RawMessage, asBytes []byte) string {
	switch {
	case len(asBytes) > 0:
		return fmt.Sprintf("%d bytes that are not JSON", len(asBytes))
	case len(asJSON) == 0:
		return ""
	}
	var b bytes.Buffer
	if err := json.Compact(&b, asJSON); err != nil {
		return err.Error()
	}
	return b.String()
}
