package cli

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
)

// listPageMax is the most tasks that the server lists in one answer.
const listPageMax = 1_000

// listLimitMax bounds --limit, because the table is built in memory.
const listLimitMax = 100_000

type listOptions struct {
	filterFlags
	limit       int
	contains    string
	params      []string
	newestFirst bool
	lastEnded   bool
}

// NewListCommand returns the command `claimq list`.
func NewListCommand(a *term.App) *cobra.Command {
	var o listOptions
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List tasks, oldest first",
		Long: `List tasks without their params and results, by default oldest first. With --output
json each page of the server's answer is one line.`,
		Example: `  claimq list --status failed --last-ended-first
  claimq list --label customer=7 --created-after 90m --newest-first
  claimq list --param /to=ada@example.org --status failed
  claimq list --contains ada@example.org --type mail
  claimq list --type mail --limit 1000 --output json`,
	}
	session.Acts(a, cmd, func(cmd *cobra.Command, _ []string) (session.Act, error) {
		if o.limit < 1 || o.limit > listLimitMax {
			return nil, term.UsageErrorf("--limit is %d: it must be 1 to %d", o.limit, listLimitMax)
		}
		if o.lastEnded && o.newestFirst {
			return nil, term.UsageErrorf("--newest-first and --last-ended-first are both given: give one of them")
		}
		return func(s session.Talk) error { return list(cmd.Context(), s, &o) }, nil
	})
	session.Within(cmd, session.LookTimeout)
	f := cmd.Flags()
	o.addFilterFlags(f)
	f.StringVar(&o.contains, "contains", "", "only those whose params contain this text as they were submitted, or whose payload does")
	f.StringArrayVar(&o.params, "param", nil, "only those with this value in their params, as /to=ada or /order/id=17; repeatable: all must match")
	f.BoolVar(&o.newestFirst, "newest-first", false, "list the newest first")
	f.BoolVar(&o.lastEnded, "last-ended-first", false, "list the last ended first; with --status completed, failed or cancelled")
	f.IntVar(&o.limit, "limit", 100, "how many at most")
	term.OnlyExplicit(cmd) // CLAIMQ_WORKER and CLAIMQ_TYPE are of workers: they would hide tasks
	return cmd
}

// list reads pages until it reaches the limit.
func list(ctx context.Context, s session.Talk, o *listOptions) error {
	filter, err := o.filter(s.App.Clock())
	if err != nil {
		return err
	}
	q := Query(&filter)
	if err := o.search(q); err != nil {
		return err
	}
	switch {
	case o.lastEnded:
		q.Set("order", "ended")
	case o.newestFirst:
		q.Set("order", "desc")
	}
	var tasks []wire.Task
	for left := o.limit; ; {
		q.Set("limit", strconv.Itoa(min(left, listPageMax)))
		var page wire.Answer
		shown, err := s.Call(ctx, session.Get("/api/tasks?"+q.Encode()), &page)
		if err != nil {
			return err
		}
		if !shown {
			tasks = append(tasks, page.Tasks...)
		}
		left -= len(page.Tasks)
		if page.NextCursor == "" || left <= 0 {
			if shown {
				return nil
			}
			return showTasks(s.App, tasks, page.NextCursor != "")
		}
		q.Set("cursor", page.NextCursor)
	}
}

// search adds what to search for in the params.
func (o *listOptions) search(q url.Values) error {
	if o.contains != "" {
		q.Set("contains", o.contains)
	}
	for _, param := range o.params {
		at, value, ok := strings.Cut(param, "=")
		if !ok || !strings.HasPrefix(at, "/") {
			return term.UsageErrorf("--param is %q: it must be /NAME=VALUE or /NAME/NAME=VALUE", param)
		}
		q.Add("param", at+":"+value)
	}
	return nil
}

// showTasks prints one row per task. more says whether the server has further tasks.
func showTasks(a *term.App, tasks []wire.Task, more bool) error {
	if len(tasks) == 0 {
		return a.Sayf("no tasks")
	}
	// These columns would be empty in most lists, so they are shown only if a task needs them.
	var withStep, withGroup, withRunAt, withError bool
	for i := range tasks {
		withStep = withStep || tasks[i].Step != ""
		withGroup = withGroup || tasks[i].Group != ""
		withRunAt = withRunAt || tasks[i].Status == "scheduled"
		withError = withError || tasks[i].Error != ""
	}
	some := func(row []string, step, runAt, group, failure string) []string {
		if withStep {
			row = append(row, step)
		}
		if withRunAt {
			row = append(row, runAt)
		}
		if withGroup {
			row = append(row, group)
		}
		if withError {
			row = append(row, failure)
		}
		return row
	}
	header := []string{"ID", "TYPE", "STATUS", "PRIORITY", "ATTEMPTS", "WORKER", "CREATED (UTC)"}
	rows := [][]string{some(header, "STEP", "RUNS AT (UTC)", "GROUP", "ERROR")}
	for i := range tasks {
		t := &tasks[i]
		rows = append(rows, some(rowOf(t), term.Cell(t.Step), runAtCell(t), term.Cell(t.Group), term.Cell(t.Error)))
	}
	if err := a.Table(rows, "PRIORITY", "ATTEMPTS", "GROUP", "CREATED (UTC)"); err != nil {
		return err
	}
	if more {
		return a.Notef("There are more: raise --limit, or filter.")
	}
	return nil
}

// rowOf returns the cells that every list shows for a task.
func rowOf(t *wire.Task) []string {
	attempts := fmt.Sprintf("%d/%d", t.Attempts, t.MaxAttempts)
	if t.MaxAttempts == 0 {
		attempts = strconv.Itoa(int(t.Attempts))
	}
	status := term.Cell(t.Status)
	if t.CancelRequested && t.Status == "claimed" {
		status += ", cancel asked"
	}
	return []string{
		strconv.FormatUint(t.ID, 10), term.Cell(t.TaskType), status, strconv.Itoa(int(t.Priority)),
		attempts, term.CellOf(t.WorkerID), t.CreatedAt.UTC().Format(term.ExactTime),
	}
}

func runAtCell(t *wire.Task) string {
	if t.Status != "scheduled" || t.RunAt == nil {
		return "-"
	}
	return t.RunAt.UTC().Format(term.ExactTime)
}
