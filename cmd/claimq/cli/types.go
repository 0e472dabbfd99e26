package cli

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
)

// NewTypesCommand returns the command `claimq types`.
func NewTypesCommand(a *term.App) *cobra.Command {
	var taskType, order, name string
	var limit int
	var attention bool
	cmd := &cobra.Command{
		Use:   "types",
		Short: "Show the task types with their rates and settings",
		Long: `Show the task types that have tasks, settings or rates. For each you see the number
of pending and claimed tasks, of scheduled, blocked (steps) and running tasks (with
steps) if there are any, how long its oldest task has been pending, the tasks
submitted, completed and failed per second over the last minute, whether it is
paused, its limits, and the defaults of its tasks. A - is a setting without a value.

--order sorts by name, a status, oldest (whose pending task was submitted first),
submitted_per_s, completed_per_s or failed_per_s, highest first except by name.
--attention shows the types that may need attention: paused, at their limit of claims
with tasks pending, with tasks pending for more than a minute and no worker, or with
tasks that failed for good in the last minute.`,
		Example: `  claimq types
  claimq types --type mail
  claimq types --order oldest --limit 10
  claimq types --attention`,
	}
	session.Look(a, cmd, func([]string) (string, error) {
		if cmd.Flags().Changed("limit") && (limit < 1 || limit > listPageMax) {
			return "", term.UsageErrorf("--limit is %d: it must be 1 to %d", limit, listPageMax)
		}
		q := url.Values{}
		if limit != 0 {
			q.Set("limit", strconv.Itoa(limit))
		}
		if order != "" {
			q.Set("order", order)
		}
		if name == "" {
			name = taskType // only the type itself and a few others match
		}
		if name != "" {
			q.Set("name", name)
		}
		if attention {
			q.Set("attention", "true")
		}
		return strings.TrimSuffix("/api/types?"+q.Encode(), "?"), nil
	}, func(answer *wire.Types) error {
		if err := showTypes(a, answer.Types, taskType); err != nil || taskType != "" {
			return err
		}
		return tellTypesLeft(a, answer)
	})
	cmd.Flags().StringVar(&taskType, "type", "", "only this task type, in the table")
	cmd.Flags().StringVar(&name, "name", "", "only types with this in their names, in upper or lower case")
	cmd.Flags().StringVar(&order, "order", "", "what comes first: name (the default), a status, oldest or a rate")
	cmd.Flags().IntVar(&limit, "limit", 0, "how many at most (default 1000)")
	cmd.Flags().BoolVar(&attention, "attention", false, "only types that may need attention")
	cmd.MarkFlagsMutuallyExclusive("type", "limit")
	cmd.MarkFlagsMutuallyExclusive("type", "name")
	return cmd
}

// ShowTypes prints one row per type, and how many types the answer leaves out.
func ShowTypes(a *term.App, answer *wire.Types) error {
	if err := showTypes(a, answer.Types, ""); err != nil || answer.Matched <= len(answer.Types) {
		return err
	}
	return a.Sayf("%s more types: 'claimq types' lists them", term.Number(answer.Matched-len(answer.Types)))
}

// tellTypesLeft says how many types the limit left out.
func tellTypesLeft(a *term.App, t *wire.Types) error {
	left := t.Matched - len(t.Types)
	if left <= 0 {
		return nil
	}
	how := "raise --limit"
	if len(t.Types) == listPageMax {
		how = "narrow it with --name, or ask for those with most by --order"
	}
	return a.Notef("There are more types, %s: %s.", term.Number(left), how)
}

// showTypes prints one row per type. Columns for settings appear only if a type has them, and columns for statuses
// other than pending and claimed only if a task has them.
func showTypes(a *term.App, types []wire.Type, only string) error {
	rows := [][]string{{"TYPE", "PENDING", "SCHEDULED", "BLOCKED", "CLAIMED", "RUNNING", "OLDEST", "IN/S", "DONE/S", "FAILED/S", "PAUSED", "MAX CLAIMED", "MAX PER KEY", "KEY RATE/S", "FAIR", "RATE/S", "DELAY", "DEAD LETTER", "LEASE", "ATTEMPTS", "BACKOFF", "RETENTION"}}
	used := make([]bool, len(rows[0]))
	for i, name := range rows[0] {
		used[i] = slices.Contains([]string{"TYPE", "PENDING", "CLAIMED", "OLDEST", "IN/S", "DONE/S", "FAILED/S"}, name)
	}
	for i := range types {
		t := &types[i]
		if only != "" && t.TaskType != only {
			continue
		}
		oldest, paused := "", ""
		if t.OldestWaitMS > 0 {
			oldest = term.ShowMS(t.OldestWaitMS)
		}
		if t.Paused {
			paused = "yes"
		}
		row := []string{
			t.TaskType, strconv.FormatInt(t.Counts["pending"], 10), showSome(t.Counts["scheduled"]), showSome(t.Counts["blocked"]),
			strconv.FormatInt(t.Counts["claimed"], 10), showSome(t.Counts["running"]), oldest,
			showRate(t.SubmittedPerS), showRate(t.CompletedPerS), showRate(t.FailedPerS), paused,
		}
		row = append(row, settingsOf(&t.TypeSettings)...)
		for i := range row {
			used[i] = used[i] || row[i] != ""
			row[i] = term.Cell(row[i])
		}
		rows = append(rows, row)
	}
	if len(rows) == 1 {
		text := "no types"
		if only != "" {
			text = noSuchType(only)
		}
		return a.Sayf("%s", text)
	}
	for i, row := range rows {
		kept := row[:0]
		for column := range row {
			if used[column] {
				kept = append(kept, row[column])
			}
		}
		rows[i] = kept
	}
	return a.Table(rows, "RETENTION", "BACKOFF", "ATTEMPTS", "LEASE", "DEAD LETTER", "DELAY", "RATE/S", "FAIR", "KEY RATE/S", "MAX PER KEY", "MAX CLAIMED", "FAILED/S")
}

// noSuchType returns the message for a type without tasks and settings.
func noSuchType(name string) string {
	return fmt.Sprintf("no tasks and no settings of type %s; 'claimq types' lists the types", term.Printable(name))
}

// showSome formats a count, and returns "" for 0.
func showSome(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// showRate formats a rate with a useful number of digits.
func showRate(perSecond float64) string {
	switch {
	case perSecond == 0:
		return ""
	case perSecond < 10:
		return strconv.FormatFloat(perSecond, 'f', 2, 64)
	}
	return strconv.FormatFloat(perSecond, 'f', 0, 64)
}

// settingsOf puts the limits and defaults of a type into words, "" for each that is not set. The order is claims at a
// time, claims of a share key at a time and their rate, turns of share keys, rate, delay, dead letter, lease, attempts,
// backoff, retention.
func settingsOf(s *wire.TypeSettings) []string {
	words := make([]string, 11)
	if s.MaxClaimed != nil {
		words[0] = strconv.Itoa(int(*s.MaxClaimed))
	}
	if s.MaxClaimedPerKey != nil {
		words[1] = strconv.Itoa(int(*s.MaxClaimedPerKey))
	}
	if s.RateLimitPerKey != nil {
		words[2] = strconv.FormatFloat(*s.RateLimitPerKey, 'f', -1, 64)
	}
	if s.Fair {
		words[3] = "yes"
	}
	if s.RateLimit != nil {
		words[4] = strconv.FormatFloat(*s.RateLimit, 'f', -1, 64)
	}
	if s.DelayMS != nil {
		words[5] = term.ShowMS(*s.DelayMS)
	}
	if d := s.DeadLetter; d != nil {
		words[6] = d.TaskType
		if d.MaxAttempts != 0 {
			words[6] += "," + strconv.Itoa(int(d.MaxAttempts)) // the form that --dead-letter takes
		}
	}
	if s.LeaseMS != nil {
		words[7] = term.ShowMS(*s.LeaseMS)
	}
	if s.MaxAttempts != nil {
		words[8] = strconv.Itoa(int(*s.MaxAttempts))
		if *s.MaxAttempts == 0 {
			words[8] = "no limit"
		}
	}
	if s.Backoff != nil {
		b := s.Backoff
		words[9] = term.NoWait
		if b.InitialMS != 0 { // the form that --backoff takes
			words[9] = fmt.Sprintf("%s,%s,%g", term.ShowMS(b.InitialMS), term.ShowMS(b.MaxMS), b.Factor)
			if b.Jitter != nil {
				words[9] += fmt.Sprintf(",%g", *b.Jitter)
			}
		}
	}
	if s.RetentionMS != nil {
		words[10] = term.ShowRetention(*s.RetentionMS)
	}
	return words
}
