package cli

import (
	"context"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
)

// NewWorkersCommand returns the command `claimq workers`.
func NewWorkersCommand(a *term.App) *cobra.Command {
	var taskType string
	cmd := &cobra.Command{
		Use:   "workers",
		Short: "Show the workers, their tasks, and when each last called",
		Long: `Show the workers that hold claims or called within the last ten minutes. A new leader
only knows workers with claims until the others call. With --type, show the workers
that hold tasks of that type, and these tasks.`,
		Example: "  claimq workers\n  claimq workers --type mail",
	}
	session.Acts(a, cmd, func(cmd *cobra.Command, _ []string) (session.Act, error) {
		return func(s session.Talk) error {
			return session.Ask(cmd.Context(), s, session.Get("/api/workers"), func(answer *wire.Workers) (err error) {
				if taskType != "" {
					answer.Workers, err = holdersOf(cmd.Context(), s, taskType, answer.Workers)
				}
				if err != nil {
					return err
				}
				return ShowWorkers(a, answer.Workers, len(answer.Workers))
			})
		}, nil
	})
	session.Within(cmd, session.LookTimeout)
	cmd.Flags().StringVar(&taskType, "type", "", "only this task type, in the table")
	return cmd
}

// holdersOf returns the workers that hold tasks of the type, each with these tasks only.
func holdersOf(ctx context.Context, s session.Talk, taskType string, workers []wire.Worker) ([]wire.Worker, error) {
	held := map[string][]uint64{}
	q := url.Values{"status": {"claimed"}, "task_type": {taskType}, "limit": {strconv.Itoa(listPageMax)}}
	for {
		var page wire.Answer
		if _, err := s.Do(ctx, session.Get("/api/tasks?"+q.Encode()), &page); err != nil {
			return nil, err
		}
		for i := range page.Tasks {
			if t := &page.Tasks[i]; t.WorkerID != nil {
				held[*t.WorkerID] = append(held[*t.WorkerID], t.ID)
			}
		}
		if page.NextCursor == "" {
			break
		}
		q.Set("cursor", page.NextCursor)
	}
	var holders []wire.Worker
	for _, w := range workers {
		if w.TaskIDs = held[w.WorkerID]; len(w.TaskIDs) > 0 {
			w.Claimed = len(w.TaskIDs)
			holders = append(holders, w)
		}
	}
	return holders, nil
}

// ShowWorkers prints one row per worker, limit at most, and how many it leaves out.
func ShowWorkers(a *term.App, workers []wire.Worker, limit int) error {
	if len(workers) == 0 {
		return a.Sayf("no workers")
	}
	rows := [][]string{{"WORKER", "CLAIMED", "LAST SEEN", "TASKS"}}
	for i := range workers[:min(len(workers), limit)] {
		w := &workers[i]
		seen := "-"
		if w.LastSeenAt != nil {
			seen = term.ShowDuration(max(a.Clock().Sub(*w.LastSeenAt), 0)) + " ago"
		}
		ids := make([]string, len(w.TaskIDs))
		for j, id := range w.TaskIDs {
			ids[j] = strconv.FormatUint(id, 10)
		}
		rows = append(rows, []string{
			term.Cell(w.WorkerID), strconv.Itoa(w.Claimed), seen, term.Cell(strings.Join(ids, " ")),
		})
	}
	if err := a.Table(rows); err != nil || len(workers) <= limit {
		return err
	}
	return a.Sayf("%d more workers: 'claimq workers' lists them", len(workers)-limit)
}
