package demo

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/claimq/claimq/client"
)

// ErrCount is returned when the count does not add up.
var ErrCount = errors.New("it does not add up")

// failuresMax bounds the failures that are printed.
const failuresMax = 5

// tally records what producers and workers were told, to be compared with the cluster's
// tasks at the end.
type tally struct {
	submitted map[string]int // acknowledged id → number of the text
	completed map[string]int // id → acknowledged completes
	failures  []error        // of calls
}

func newTally() tally { return tally{submitted: map[string]int{}, completed: map[string]int{}} }

// sums is the count at the end.
type sums struct {
	submitted, completed, wrong, twice, lost, surplus int
}

// sum compares the cluster's tasks with what was acknowledged.
func (t *tally) sum(tasks []*client.Task) sums {
	s := sums{submitted: len(t.submitted)}
	have := map[string]bool{}
	for _, task := range tasks {
		number, acknowledged := t.submitted[task.ID]
		switch {
		case !acknowledged || have[task.ID]:
			s.surplus++
		case task.Status != client.StatusCompleted:
			s.lost++
		case string(task.Result) != strconv.Quote(hash(textOf(number))):
			s.completed++
			s.wrong++
		default:
			s.completed++
		}
		have[task.ID] = true
	}
	for id := range t.submitted {
		if !have[id] {
			s.lost++
		}
	}
	for id, count := range t.completed {
		if count > 1 {
			s.twice++
		}
		if _, acknowledged := t.submitted[id]; acknowledged && !have[id] {
			s.wrong++ // it was done, but is missing
		}
	}
	return s
}

// ok reports whether the sums match the number of tasks.
func (s sums) ok(tasks int) bool {
	return s == sums{submitted: tasks, completed: tasks}
}

// count reads the cluster's tasks and prints the sums. All work has ended.
func (d *demo) count(ctx context.Context) error {
	var tasks []*client.Task
	for task, err := range d.client.Tasks(ctx, client.Filter{}) {
		if err != nil {
			return fmt.Errorf("count: %w", err)
		}
		tasks = append(tasks, task)
	}
	s, failures := d.tally.sum(tasks), d.tally.failures
	repeats := thousands(int(d.client.Stats().Repeats))
	d.say("5", "Counting what was acknowledged against what the cluster has.\n")
	for _, line := range []struct {
		name, value, note string
	}{
		{"submitted", thousands(s.submitted), "acknowledged to the producers"},
		{"completed", thousands(s.completed), "each result computed again, and compared"},
		{"wrong results", thousands(s.wrong), "among them"},
		{"done twice", thousands(s.twice), "tasks that two workers were told they had completed"},
		{"lost", thousands(s.lost), "tasks that were acknowledged, and are not there or not done"},
		{"not asked for", thousands(s.surplus), "tasks that are there, and were acknowledged to nobody"},
		{"failed calls", thousands(len(failures)), "those with an unknown outcome among them (" + repeats + " requests were sent again)"},
		{"nobody could write for", fmt.Sprintf("%.2f s", d.stood.Seconds()), "from the kill to the next acknowledged write"},
	} {
		fmt.Fprintf(d.Out, "     %-22s %7s   %s\n", line.name, line.value, line.note)
	}
	if len(failures) > 0 {
		fmt.Fprintln(d.Out, errors.Join(failures[:min(len(failures), failuresMax)]...))
	}
	if !s.ok(d.Tasks) || len(failures) > 0 {
		return ErrCount
	}
	return nil
}
