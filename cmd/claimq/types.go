package main

import (
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client"
)

func newTypesCommand(a *app) *cobra.Command {
	var f clientFlags
	var taskType string
	cmd := &cobra.Command{
		Use:   "types",
		Short: "Show the task types with their settings",
		Long: `Show the task types that have tasks or settings: how many of their tasks are
pending and claimed, whether they are paused, their limits, and the defaults of
their tasks. - is what is not set.`,
		Example: "  claimq types\n  claimq types --type mail",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.talk(&f, func(s session) error {
				var answer wire.Types
				shown, err := s.call(cmd.Context(), client.Request{Method: http.MethodGet, Path: "/api/types"}, "", &answer)
				if err != nil || shown {
					return err
				}
				return showTypes(a.stdout, answer.Types, taskType)
			})
		},
	}
	addClientFlags(a, cmd, &f)
	cmd.Flags().StringVar(&taskType, "type", "", "only this task type, in the table")
	return cmd
}

// showTypes prints a row a type.
func showTypes(w io.Writer, types []wire.Type, only string) error {
	rows := [][]string{{"TYPE", "PENDING", "CLAIMED", "OLDEST", "PAUSED", "MAX CLAIMED", "RATE/S", "LEASE", "ATTEMPTS", "BACKOFF", "RETENTION"}}
	for i := range types {
		t := &types[i]
		if only != "" && t.TaskType != only {
			continue
		}
		oldest, paused := "", ""
		if t.OldestPendingAgeMS > 0 {
			oldest = showMS(t.OldestPendingAgeMS)
		}
		if t.Paused {
			paused = "yes"
		}
		row := []string{
			t.TaskType, strconv.FormatInt(t.Counts["pending"], 10), strconv.FormatInt(t.Counts["claimed"], 10), oldest, paused,
		}
		row = append(row, settingsOf(&t.TypeSettings)...)
		for i := range row {
			row[i] = cell(row[i], typeWidth)
		}
		rows = append(rows, row)
	}
	if len(rows) == 1 {
		_, err := fmt.Fprintln(w, "no types")
		return err
	}
	return table(w, rows)
}

// settingsOf are the limits and the defaults of a type in words, "" for what is
// not set: claims at a time, rate, lease, attempts, backoff, retention.
func settingsOf(s *wire.TypeSettings) []string {
	words := make([]string, 6)
	if s.MaxClaimed != nil {
		words[0] = strconv.Itoa(int(*s.MaxClaimed))
	}
	if s.RateLimit != nil {
		words[1] = strconv.FormatFloat(*s.RateLimit, 'f', -1, 64)
	}
	if s.LeaseMS != nil {
		words[2] = showMS(*s.LeaseMS)
	}
	if s.MaxAttempts != nil {
		words[3] = strconv.Itoa(int(*s.MaxAttempts))
		if *s.MaxAttempts == 0 {
			words[3] = "no limit"
		}
	}
	if s.Backoff != nil {
		b := s.Backoff
		words[4] = fmt.Sprintf("%s,%s,%g,%g", showMS(b.InitialMS), showMS(b.MaxMS), b.Factor, b.Jitter) // as --backoff takes it
	}
	if s.RetentionMS != nil {
		words[5] = showRetention(*s.RetentionMS)
	}
	return words
}
