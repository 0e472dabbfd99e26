package cli

import (
	"errors"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
)

// historyMinutesMax bounds the minutes that the cluster remembers.
const historyMinutesMax = 360

// NewHistoryCommand returns the command `claimq history`.
func NewHistoryCommand(a *term.App) *cobra.Command {
	var taskType string
	var minutes int
	cmd := &cobra.Command{
		Use:   "history",
		Short: "Show what was submitted, ended and pending in the last minutes",
		Long: `Show for each minute how many tasks were submitted and ended, how many were pending
and claimed at its end, how long tasks waited to be claimed, and how long they ran
until they were completed (the median and the 99th percentile). A - means that there
were no tasks. The last minute is under way.

The cluster remembers 6 hours, in total and for up to 100 types: all nodes show the
same, also after they were restarted.`,
		Example: `  claimq history
  claimq history --type mail --minutes 360
  claimq history --output json`,
	}
	session.Look(a, cmd, func([]string) (string, error) {
		if minutes < 1 || minutes > historyMinutesMax {
			return "", term.UsageErrorf("--minutes is %d: it must be 1 to %d", minutes, historyMinutesMax)
		}
		q := url.Values{"minutes": {strconv.Itoa(minutes)}}
		if taskType != "" {
			q.Set("task_type", taskType)
		}
		return "/api/history?" + q.Encode(), nil
	}, func(answer *wire.History) error { return showHistory(a, answer, taskType) })
	cmd.Flags().StringVar(&taskType, "type", "", "only this task type")
	cmd.Flags().IntVar(&minutes, "minutes", 30, "how far back")
	return cmd
}

// showHistory prints one row per minute, the latest last.
func showHistory(a *term.App, h *wire.History, taskType string) error {
	switch {
	case !h.Kept:
		return a.Sayf("there is no history of type %s", term.Printable(taskType))
	case h.From == nil || len(h.Submitted) == 0:
		return a.Sayf("no task was submitted yet")
	case !h.Even():
		return errors.New("the answer's arrays are not of the same intervals")
	}
	rows := [][]string{{"FROM (UTC)", "SUBMITTED", "COMPLETED", "FAILED", "PENDING", "CLAIMED", "OLDEST", "WAITED P50", "WAITED P99", "RAN P50", "RAN P99"}}
	for i := range h.Submitted {
		row := []string{h.From.Add(time.Duration(int64(i)*h.IntervalMS) * time.Millisecond).UTC().Format(time.TimeOnly)}
		for _, counts := range [...][]*int64{h.Submitted, h.Completed, h.Failed, h.Pending, h.Claimed} {
			row = append(row, shownIf(counts[i], term.Number))
		}
		for _, times := range [...][]*int64{h.OldestPendingAgeMS, h.WaitedP50MS, h.WaitedP99MS, h.RanP50MS, h.RanP99MS} {
			row = append(row, shownIf(times[i], term.ShowMS))
		}
		rows = append(rows, row)
	}
	return a.Table(rows, "RAN P50", "WAITED P50", "CLAIMED")
}

// shownIf formats a number with show, and returns - for nil.
func shownIf(n *int64, show func(int64) string) string {
	if n == nil {
		return term.Cell("")
	}
	return show(*n)
}
