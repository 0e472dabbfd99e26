package cli

import (
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
)

// NewFailuresCommand returns the command `claimq failures`.
func NewFailuresCommand(a *term.App) *cobra.Command {
	var taskType, endedAfter string
	var limit int
	cmd := &cobra.Command{
		Use:   "failures",
		Short: "Show why tasks failed: failed tasks, grouped by their errors",
		Long: `Show the 10,000 tasks that failed last, grouped by type and error, largest group
first. Two errors are in one group if the lines that say what went wrong, of a
traceback the innermost, differ only in numbers, ids and quoted parts. Pass a GROUP
to --error-group of list and bulk.`,
		Example: `  claimq failures
  claimq failures --type mail --limit 3
  claimq failures --ended-after 1h
  claimq list --status failed --error-group b3a41043fcf58a75 --last-ended-first
  claimq bulk retry --error-group b3a41043fcf58a75 --dry-run`,
	}
	session.Look(a, cmd, func([]string) (string, error) {
		if limit < 1 || limit > listPageMax {
			return "", term.UsageErrorf("--limit is %d: it must be 1 to %d", limit, listPageMax)
		}
		q := url.Values{"limit": {strconv.Itoa(limit)}}
		if taskType != "" {
			q.Set("task_type", taskType)
		}
		at, err := parseTimeOrAgo("--ended-after", endedAfter, a.Clock())
		if err != nil {
			return "", err
		}
		if at != nil {
			q.Set("ended_after", at.Format(time.RFC3339Nano))
		}
		return "/api/failures?" + q.Encode(), nil
	}, func(answer *wire.Failures) error { return showFailures(a, answer) })
	cmd.Flags().StringVar(&taskType, "type", "", "only this task type")
	cmd.Flags().StringVar(&endedAfter, "ended-after", "", "only those that failed after this time, as 2026-01-02T15:04:05Z, or this long ago, as 1h or 7d")
	cmd.Flags().IntVar(&limit, "limit", 20, "how many groups at most")
	return cmd
}

// showFailures prints one row per group, and says which tasks were looked at.
func showFailures(a *term.App, f *wire.Failures) error {
	if f.Looked == 0 {
		return a.Sayf("no failed tasks")
	}
	rows := [][]string{{"GROUP", "TYPE", "COUNT", "FIRST (UTC)", "LAST (UTC)", "NEWEST", "ERROR"}}
	for i := range f.Failures {
		g := &f.Failures[i]
		newest := ""
		if len(g.IDs) > 0 {
			newest = strconv.FormatUint(g.IDs[0], 10)
		}
		rows = append(rows, []string{
			term.Cell(g.Group), term.Cell(g.TaskType), term.Number(g.Count), g.FirstAt.UTC().Format(term.ExactTime), g.LastAt.UTC().Format(term.ExactTime),
			newest, term.Cell(g.Signature),
		})
	}
	if err := a.Table(rows, "NEWEST", "FIRST (UTC)"); err != nil {
		return err
	}
	if left := f.Groups - len(f.Failures); left > 0 {
		if err := a.Notef("There are more groups, %s: raise --limit.", term.Number(left)); err != nil {
			return err
		}
	}
	if int64(f.Looked) < f.Failed && f.NextCursor != "" {
		return a.Notef("These are the %s that failed last, of %s.", term.Number(f.Looked), term.Count(f.Failed, "task"))
	}
	return nil
}
