package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/internal/pause"
)

// tally is what producers and workers were told, to be held against what the
// cluster has at the end. It is safe for concurrent use.
type tally struct {
	mu          sync.Mutex     // guards all
	ids         map[string]int // acknowledged id → number of the text
	completions map[string]int // id → acknowledged completes
	failures    []error        // of calls
	diedAt      time.Time      // of the leader
	outage      time.Duration  // from then to the next acknowledged write; 0 = none yet
}

func newTally() *tally { return &tally{ids: map[string]int{}, completions: map[string]int{}} }

// submitted notes a submit that was asked for then, and has been acknowledged.
func (t *tally) submitted(id string, n int, asked time.Time) {
	t.wrote(asked, func() { t.ids[id] = n })
}

// completed notes a complete that was asked for then, and has been acknowledged.
func (t *tally) completed(id string, asked time.Time) {
	t.wrote(asked, func() { t.completions[id]++ })
}

func (t *tally) wrote(asked time.Time, note func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	note()
	if t.outage == 0 && !t.diedAt.IsZero() && asked.After(t.diedAt) {
		t.outage = time.Since(t.diedAt)
	}
}

// failed notes the error of a call.
func (t *tally) failed(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failures = append(t.failures, err)
}

// leaderDies notes that the leader is about to be killed, and says how many tasks are
// submitted and completed.
func (t *tally) leaderDies(say func(submitted, completed int)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	say(len(t.ids), len(t.completions))
	t.diedAt = time.Now()
}

// wait waits until ready, which looks at the tally, is true.
func (t *tally) wait(ctx context.Context, ready func() bool) error {
	return pause.Until(ctx, pollInterval, func() error {
		t.mu.Lock()
		defer t.mu.Unlock()
		if !ready() {
			return fmt.Errorf("%d tasks are submitted, %d completed", len(t.ids), len(t.completions))
		}
		return nil
	})
}

// waitCompleted waits until so many tasks are completed.
func (t *tally) waitCompleted(ctx context.Context, count int) error {
	return t.wait(ctx, func() bool { return len(t.completions) >= count })
}

// waitOutage waits until a write is acknowledged after the leader's death, and returns how
// long there was none.
func (t *tally) waitOutage(ctx context.Context) (outage time.Duration, err error) {
	err = t.wait(ctx, func() bool {
		outage = t.outage
		return outage > 0
	})
	return outage, err
}

// sums is the count at the end.
type sums struct {
	submitted, completed, wrong, twice, lost, surplus int
}

// sum holds the tasks that the cluster has against what was acknowledged.
func (t *tally) sum(tasks []*client.Task, rounds int) sums {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := sums{submitted: len(t.ids)}
	have := map[string]bool{}
	for _, task := range tasks {
		n, acknowledged := t.ids[task.ID]
		if !acknowledged || have[task.ID] {
			s.surplus++
			continue
		}
		have[task.ID] = true
		if task.Status != client.StatusCompleted {
			s.lost++
			continue
		}
		s.completed++
		var result string
		if err := json.Unmarshal(task.Result, &result); err != nil || result != jobOf(n, rounds).do() {
			s.wrong++
		}
	}
	s.lost += s.submitted - len(have)
	for id, count := range t.completions {
		if count > 1 {
			s.twice++
		}
		if _, acknowledged := t.ids[id]; acknowledged && !have[id] {
			s.wrong++ // it was done, and is not there
		}
	}
	return s
}

// ok reports whether the sums add up to what was asked for.
func (s sums) ok(tasks int) bool {
	return s == sums{submitted: tasks, completed: tasks}
}

// ErrCount is returned when the count does not add up.
var ErrCount = errors.New("it does not add up")

// failuresMax bounds the failures that are printed.
const failuresMax = 5

// count reads what the cluster has, and prints the sums.
func (d *demo) count(ctx context.Context) error {
	var tasks []*client.Task
	for task, err := range d.client.Tasks(ctx, client.Filter{}) {
		if err != nil {
			return fmt.Errorf("count: %w", err)
		}
		tasks = append(tasks, task)
	}
	s, calls := d.tally.sum(tasks, d.Rounds), d.client.Stats()
	failures := d.tally.failures
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
		{"failed calls", thousands(len(failures)), fmt.Sprintf("those with an unknown outcome among them (%s requests were sent again)", thousands(int(calls.Repeats)))},
		{"nobody could write for", fmt.Sprintf("%.2f s", d.tally.outage.Seconds()), "from the kill to the next acknowledged write"},
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

// thousands writes n with commas.
func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
