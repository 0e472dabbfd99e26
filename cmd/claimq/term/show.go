package term

import (
	"bytes"
	"cmp"
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
	"github.com/claimq/claimq/internal/bytesize"
)

// valueWidth is the most characters of a value shown on a terminal.
const valueWidth = 1_000

// Printable makes s safe for a terminal, because text from others may contain control characters. It shows them as Go
// escapes.
func Printable(s string) string {
	if utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return s
	}
	q := strconv.Quote(s)
	return strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
}

// Cell returns s printable, or - if s is empty.
func Cell(s string) string {
	return cmp.Or(Printable(s), "-")
}

// YesNo returns yes or no.
func YesNo(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

// CellOf returns the cell for the value that v points to, or - for nil.
func CellOf[T any](v *T) string {
	if v == nil {
		return Cell("")
	}
	return Cell(fmt.Sprint(*v))
}

// Text returns s printable, cut to valueWidth on a terminal.
func (a *App) Text(s string) string {
	if a.Width == 0 {
		return Printable(s)
	}
	return CutTo(Printable(s), valueWidth)
}

// ExactTime is the layout for times, in UTC.
const ExactTime = "2006-01-02 15:04:05.000"

// ShowTime formats a time with milliseconds, and says how long ago it was.
func (a *App) ShowTime(t time.Time) string {
	ago := a.Clock().Sub(t)
	if ago < 0 {
		return t.UTC().Format(ExactTime) + " UTC (in " + ShowDuration(-ago) + ")"
	}
	return t.UTC().Format(ExactTime) + " UTC (" + ShowDuration(ago) + " ago)"
}

// ShowMS is ShowDuration for milliseconds.
func ShowMS(ms int64) string { return ShowDuration(time.Duration(ms) * time.Millisecond) }

// ShowDuration formats d in its two largest units.
func ShowDuration(d time.Duration) string {
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

// Fields collects the lines of an object that is shown one field per line.
type Fields [][]string

// Add adds a field. value must be printable.
func (f *Fields) Add(name, value string) { *f = append(*f, []string{name, value}) }

// AddSome adds a field if value is not empty.
func (f *Fields) AddSome(name, value string) {
	if value != "" {
		f.Add(name, Printable(value))
	}
}

// ShowTask prints a task, one field per line. It prints nothing for nil.
func (a *App) ShowTask(t *wire.Task) error {
	if t == nil {
		return nil
	}
	var f Fields
	f.Add("id", strconv.FormatUint(t.ID, 10))
	f.Add("type", Printable(t.TaskType))
	f.Add("status", Printable(t.Status))
	if t.CancelRequested && t.Status == "claimed" {
		f.Add("cancel", "requested: its worker learns of it at its next extend")
	}
	if t.CancelRequested && t.Status == "running" {
		f.Add("cancel", "requested: it ends when no step is claimed any more")
	}
	if t.RunAt != nil && t.Status == "scheduled" {
		f.Add("runs at", a.ShowTime(*t.RunAt))
	}
	addSteps(&f, t)
	a.addIdentity(&f, t)
	a.addClaim(&f, t)
	a.addTimes(&f, t)
	f.AddSome("error", t.Error)
	f.AddSome("params", a.Value(t.Params, t.Payload))
	for _, name := range t.DependsOn {
		on := t.Dependencies[name]
		f.AddSome("result of "+Printable(name), a.Value(on.Result, on.ResultPayload))
	}
	f.AddSome("left out", strings.Join(t.DependenciesLeftOut, ", "))
	f.AddSome("progress", a.Value(t.Progress, nil))
	f.AddSome("result", a.Value(t.Result, t.ResultPayload))
	if err := Columns(a.Stdout, f); err != nil {
		return err
	}
	return a.showAttempts(t.AttemptsLog)
}

// addSteps adds the fields of a parent or a step.
func addSteps(f *Fields, t *wire.Task) {
	if t.ParentID != 0 {
		f.Add("step", fmt.Sprintf("%s of task %d", Printable(t.Step), t.ParentID))
		f.AddSome("depends on", strings.Join(t.DependsOn, ", "))
	}
	if len(t.Steps) > 0 {
		f.Add("steps", fmt.Sprintf("%s ('claimq steps %d' draws them)", CountSteps(t.Steps), t.ID))
	}
	switch t.Finalize {
	case "":
	case client.FinalizeAuto:
		f.Add("finalize", "auto: it ends with its last step")
	case client.FinalizeClaim:
		f.Add("finalize", "claim: a processor ends it")
	default:
		f.AddSome("finalize", t.Finalize)
	}
	switch t.OnStepFailure {
	case "":
	case client.FailOnStepFailure:
		f.Add("step fails", "fail: the other steps are cancelled")
	case client.ContinueOnStepFailure:
		f.Add("step fails", "continue: those that depend on it are cancelled")
	default:
		f.AddSome("step fails", t.OnStepFailure)
	}
}

// addIdentity adds the fields that the task was submitted with.
func (a *App) addIdentity(f *Fields, t *wire.Task) {
	key := t.IdempotencyKey
	switch t.Unique {
	case "active":
		key += " (until it ends)"
	case "window":
		key += " (until " + a.ShowTime(t.CreatedAt.Add(time.Duration(t.UniqueMS)*time.Millisecond)) + ")"
	}
	f.AddSome("key", key)
	f.AddSome("group", t.Group)
	f.AddSome("share key", t.ShareKey)
	switch {
	case t.Signalled:
		f.Add("signal", cmp.Or(Printable(ShowValue(t.Signal, nil)), "came"))
	case t.SignalUntil != nil:
		f.Add("signal", "none yet; it fails without one at "+a.ShowTime(*t.SignalUntil))
	}
	f.AddSome("labels", showLabels(t.Labels))
	f.Add("priority", strconv.Itoa(int(t.Priority)))
	if t.Finalize == "" { // no worker claims a task with steps
		f.Add("attempts", attemptsOf(t))
	}
	const byDefault = " (by default)" // from its type or the server
	switch {
	case t.LeaseMS > 0:
		f.Add("lease", ShowMS(t.LeaseMS))
	case t.InForce != nil && t.InForce.LeaseMS > 0:
		f.Add("lease", ShowMS(t.InForce.LeaseMS)+byDefault)
	}
	switch {
	case t.Backoff != nil:
		f.Add("backoff", showBackoff(t.Backoff))
	case t.InForce != nil && t.InForce.LeaseMS > 0: // a parent is never claimed
		f.Add("backoff", showBackoff(t.InForce.Backoff)+byDefault)
	}
	switch {
	case t.RetentionMS != nil:
		f.Add("retention", ShowRetention(*t.RetentionMS))
	case t.InForce != nil && t.InForce.RetentionMS != nil:
		f.Add("retention", ShowRetention(*t.InForce.RetentionMS)+byDefault)
	}
}

// addClaim adds the worker that holds or held the task.
func (a *App) addClaim(f *Fields, t *wire.Task) {
	if t.WorkerID != nil {
		f.Add("worker", Printable(*t.WorkerID))
	}
	if t.ClaimToken != nil {
		f.Add("token", strconv.FormatUint(*t.ClaimToken, 10))
	}
	if t.LeaseRemainingMS != nil {
		f.Add("lease left", ShowMS(*t.LeaseRemainingMS))
	}
}

func (a *App) addTimes(f *Fields, t *wire.Task) {
	f.Add("created", a.ShowTime(t.CreatedAt))
	if t.ExpiresAt != nil {
		expires := a.ShowTime(*t.ExpiresAt)
		if t.ExpiresAgain {
			expires += ", also after a claim"
		}
		f.Add("expires", expires)
	}
	if t.ClaimedAt != nil {
		f.Add("claimed", a.ShowTime(*t.ClaimedAt))
	}
	if t.CompletedAt != nil {
		f.Add("ended", a.ShowTime(*t.CompletedAt))
	}
}

// showLabels formats labels on one line, sorted by name.
func showLabels(labels wire.Labels) string {
	names := slices.Sorted(maps.Keys(labels))
	for i, name := range names {
		names[i] = name + "=" + labels[name]
	}
	return strings.Join(names, " ")
}

// NoWait is the text for a backoff after which a task can be claimed again at once.
const NoWait = "no wait"

func showBackoff(b *wire.Backoff) string {
	if b == nil || b.InitialMS == 0 {
		return NoWait
	}
	text := fmt.Sprintf("%s, then %g times as long, at most %s", ShowMS(b.InitialMS), b.Factor, ShowMS(b.MaxMS))
	if b.Jitter != nil && *b.Jitter > 0 {
		text += fmt.Sprintf(", less up to %g %%", *b.Jitter*100)
	}
	return text
}

// ShowRetention says how long an ended task is kept.
func ShowRetention(ms int64) string {
	switch {
	case ms < 0:
		return "until it is deleted"
	case ms == 0:
		return "gone at its end"
	}
	return ShowMS(ms)
}

func (a *App) showAttempts(log []wire.Attempt) error {
	if len(log) == 0 {
		return nil
	}
	rows := [][]string{{"TOKEN", "WORKER", "CLAIMED (UTC)", "LASTED", "OUTCOME", "ERROR"}}
	for _, at := range log {
		lasted := "-"
		if at.EndedAt != nil {
			lasted = ShowDuration(at.EndedAt.Sub(at.ClaimedAt))
		}
		rows = append(rows, []string{
			strconv.FormatUint(at.ClaimToken, 10), Cell(at.WorkerID), at.ClaimedAt.UTC().Format(ExactTime),
			lasted, CellOf(at.Outcome), Cell(at.Error),
		})
	}
	if _, err := fmt.Fprintln(a.Stdout); err != nil {
		return err
	}
	return a.Table(rows, "TOKEN")
}

func attemptsOf(t *wire.Task) string {
	if t.MaxAttempts == 0 {
		return fmt.Sprintf("%d, no limit", t.Attempts)
	}
	return fmt.Sprintf("%d of %d", t.Attempts, t.MaxAttempts)
}

// Value formats params or a result. On a terminal it cuts long ones.
func (a *App) Value(asJSON json.RawMessage, asBytes []byte) string {
	text := ShowValue(asJSON, asBytes)
	if a.Width == 0 || displayWidth(text) <= valueWidth {
		return text
	}
	return CutTo(text, valueWidth) + fmt.Sprintf(" (%s; --output json shows all)", bytesize.Text(int64(len(asJSON))))
}

// ShowValue formats params or a result on one line.
func ShowValue(asJSON json.RawMessage, asBytes []byte) string {
	switch {
	case len(asBytes) > 0:
		return fmt.Sprintf("%s, not JSON", bytesize.Text(int64(len(asBytes))))
	case len(asJSON) == 0:
		return ""
	}
	var b bytes.Buffer
	if err := json.Compact(&b, asJSON); err != nil {
		return err.Error()
	}
	return string(SafeJSON(b.Bytes()))
}

// ShellQuote quotes s as one word for any POSIX shell.
func ShellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// Number formats n with commas.
func Number[N int | int64](n N) string {
	text := strconv.FormatInt(int64(n), 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Count formats n with noun, in the plural unless n is 1.
func Count[N int | int64](n N, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return Number(n) + " " + noun
}
