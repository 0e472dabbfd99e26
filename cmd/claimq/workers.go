package main

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client"
)

// workerTasksWidth is how many characters of a worker's tasks a row shows.
const workerTasksWidth = 40

func newWorkersCommand(a *app) *cobra.Command {
	var f clientFlags
	cmd := &cobra.Command{
		Use:   "workers",
		Short: "Show who holds what, and when each worker was last heard from",
		Long: `Show the workers that hold claims or were heard from in the last ten minutes. A new
leader knows only of those who hold claims, until the others call.`,
		Example: "  claimq workers",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.talk(&f, func(s session) error {
				var answer wire.Workers
				shown, err := s.call(cmd.Context(), client.Request{Method: http.MethodGet, Path: "/api/workers"}, "", &answer)
				if err != nil || shown {
					return err
				}
				return a.showWorkers(answer.Workers)
			})
		},
	}
	addClientFlags(a, cmd, &f)
	return cmd
}

// showWorkers prints a row a worker.
func (a *app) showWorkers(workers []wire.Worker) error {
	if len(workers) == 0 {
		_, err := fmt.Fprintln(a.stdout, "no workers")
		return err
	}
	rows := [][]string{{"WORKER", "CLAIMED", "LAST SEEN", "TASKS"}}
	for i := range workers {
		w := &workers[i]
		seen := "-"
		if w.LastSeenAt != nil {
			seen = showDuration(max(a.clock().Sub(*w.LastSeenAt), 0)) + " ago"
		}
		ids := make([]string, len(w.TaskIDs))
		for j, id := range w.TaskIDs {
			ids[j] = strconv.FormatUint(id, 10)
		}
		rows = append(rows, []string{
			cell(w.WorkerID, workerWidth*2), strconv.Itoa(w.Claimed), seen, cell(strings.Join(ids, " "), workerTasksWidth),
		})
	}
	return table(a.stdout, rows)
}
