package main

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client"
)

func newStatsCommand(a *app) *cobra.Command {
	var f clientFlags
	var taskType string
	cmd := &cobra.Command{
		Use:     "stats",
		Short:   "Show how many tasks there are, by type and status",
		Long:    `Show how many tasks there are, by type and status, exact at one index of the log.`,
		Example: "  claimq stats\n  claimq stats --type mail",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.talk(&f, func(s session) error {
				var stats wire.Stats
				shown, err := s.call(cmd.Context(), client.Request{Method: http.MethodGet, Path: "/api/stats"}, "", &stats)
				if err != nil || shown {
					return err
				}
				return showStats(a.stdout, &stats, taskType)
			})
		},
	}
	addClientFlags(a, cmd, &f)
	cmd.Flags().StringVar(&taskType, "type", "", "only this task type, in the table")
	return cmd
}

// showStats prints a row a type; only the statuses that occur have a column,
// but for those of everyday.
func showStats(w io.Writer, stats *wire.Stats, taskType string) error {
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
	slices.Sort(types)
	for _, t := range types {
		rows = append(rows, row(cell(t, typeWidth), stats.Types[t]))
	}
	if taskType == "" {
		rows = append(rows, row("(all)", stats.Counts))
	}
	if err := table(w, rows); err != nil {
		return err
	}
	oldest := time.Duration(stats.OldestPendingAgeMS) * time.Millisecond
	_, err := fmt.Fprintf(w, "\noldest pending: %s   held: %d bytes   at log index %d\n", showDuration(oldest), stats.Bytes, stats.Index)
	return err
}
