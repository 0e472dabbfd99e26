package cli

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/internal/bytesize"
)

// watchInterval is the time between two looks of --watch.
const watchInterval = 2 * time.Second

// NewStatsCommand returns the command `claimq stats`.
func NewStatsCommand(a *term.App) *cobra.Command {
	var taskType string
	var watch bool
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Show how many tasks there are, by type and status",
		Long: `Show the number of tasks by type and status, exact at one index of the log. --watch
refreshes the table every two seconds until Ctrl-C.`,
		Example: "  claimq stats\n  claimq stats --type mail\n  claimq stats --watch",
	}
	session.Acts(a, cmd, func(cmd *cobra.Command, _ []string) (session.Act, error) {
		return func(s session.Talk) error {
			show := func() error {
				return session.Ask(cmd.Context(), s, session.Get("/api/stats"), func(answer *wire.Stats) error { return showStats(a, answer, taskType) })
			}
			if watch {
				return session.Watch(cmd.Context(), s, watchInterval, show)
			}
			return show()
		}, nil
	})
	session.Within(cmd, session.LookTimeout)
	cmd.Flags().StringVar(&taskType, "type", "", "only this task type, in the table")
	cmd.Flags().BoolVar(&watch, "watch", false, "refresh every two seconds")
	return cmd
}

// showStats prints one row per type. It has columns for the common statuses, and for others only if a task has them.
func showStats(a *term.App, stats *wire.Stats, taskType string) error {
	var columns []string
	for _, status := range []string{"pending", "scheduled", "blocked", "claimed", "running", "completed", "failed", "cancelled"} {
		everyday := status == "pending" || status == "claimed" || status == "completed" || status == "failed"
		if everyday || stats.Counts[status] > 0 {
			columns = append(columns, status)
		}
	}
	row := func(name string, counts map[string]int64) []string {
		cells := []string{name}
		for _, status := range columns {
			cells = append(cells, strconv.FormatInt(counts[status], 10))
		}
		return cells
	}
	rows := [][]string{append([]string{"TYPE"}, columns...)}
	for i := 1; i < len(rows[0]); i++ {
		rows[0][i] = strings.ToUpper(rows[0][i])
	}
	types := make([]string, 0, len(stats.Types))
	for t := range stats.Types {
		if taskType == "" || t == taskType {
			types = append(types, t)
		}
	}
	if taskType != "" && len(types) == 0 && stats.TypesLeftOut == 0 {
		return a.Sayf("%s", noSuchType(taskType))
	}
	slices.Sort(types)
	for _, t := range types {
		rows = append(rows, row(term.Cell(t), stats.Types[t]))
	}
	if taskType == "" {
		rows = append(rows, row("(all)", stats.Counts))
	}
	if err := a.Table(rows); err != nil {
		return err
	}
	if stats.TypesLeftOut > 0 {
		if err := a.Sayf("%d more types: 'claimq types' lists them", stats.TypesLeftOut); err != nil {
			return err
		}
	}
	if taskType != "" { // the other lines count tasks of all types
		return a.Sayf("\nat log index %d", stats.Index)
	}
	oldest := time.Duration(stats.OldestPendingAgeMS) * time.Millisecond
	return a.Sayf("\noldest pending: %s   in memory: %s   at log index %d", term.ShowDuration(oldest), bytesize.Text(stats.Bytes), stats.Index)
}
