package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/claimq/claimq/client"
)

// tally is what producers and workers were told, to be held against what the
// cluster has at the end. It is safe for concurrent use; its zero value is
// empty.
type tally struct {
	mu          sync.Mutex     // guards all
	ids         map[string]int // acknowledged id → number of the text
	completions map[string]int // id → acknowledged completes
	repeated    int            // claims whose answer had been lost and was asked for again
	unknown     int            // calls whose outcome stayed unknown
	refused     []error        // other failures, the first few
	failures    int
	producers   int // that have ended
	diedAt      time.Time
	backAfter   time.Duration // 0 = nobody has written since
}

// refusedMax bounds the failures that are kept for printing.
const refusedMax = 5

func (t *tally) submitted(id string, n int, asked time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ids == nil {
		t.ids = map[string]int{}
	}
	t.ids[id] = n
	t.wroteLocked(asked)
}

func (t *tally) claimed(c *client.Claim, asked time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.Repeated {
		t.repeated++
	}
	t.wroteLocked(asked)
}

func (t *tally) completed(id string, asked time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.completions == nil {
		t.completions = map[string]int{}
	}
	t.completions[id]++
	t.wroteLocked(asked)
}

// wroteLocked notes that a write that was asked for then has been acknowledged.
func (t *tally) wroteLocked(asked time.Time) {
	if t.backAfter == 0 && !t.diedAt.IsZero() && asked.After(t.diedAt) {
		t.backAfter = time.Since(t.diedAt)
	}
}

func (t *tally) failed(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if errors.Is(err, client.ErrOutcomeUnknown) {
		t.unknown++
		return
	}
	t.failures++
	if len(t.refused) < refusedMax {
		t.refused = append(t.refused, err)
	}
}

func (t *tally) producerDone() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.producers++
}

func (t *tally) producersDone() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.producers
}

// leaderDies notes that the leader is about to be killed.
func (t *tally) leaderDies() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.diedAt = time.Now()
}

// outage returns how long after the kill the first write was acknowledged that
// had been asked for after it, 0 if none was yet.
func (t *tally) outage() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.backAfter
}

func (t *tally) progress() (submitted, completed int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.ids), len(t.completions)
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

// count reads what the cluster has, and prints the sums.
func (d *demo) count(ctx context.Context) error {
	var tasks []*client.Task
	for task, err := range d.client.Tasks(ctx, client.Filter{}) {
		if err != nil {
			return fmt.Errorf("count: %w", err)
		}
		tasks = append(tasks, task)
	}
	s := d.tally.sum(tasks, d.rounds)
	d.say(5, "Counting what was acknowledged against what the cluster has.\n")
	line := func(name string, n int, note string) {
		fmt.Fprintf(d.out, "     %-22s %7s   %s\n", name, thousands(n), note)
	}
	line("submitted", s.submitted, "acknowledged to the producers")
	line("completed", s.completed, "each result computed again, and compared")
	line("wrong results", s.wrong, "among them")
	line("done twice", s.twice, "tasks that two workers were told they had completed")
	line("lost", s.lost, "tasks that were acknowledged, and are not there or not done")
	line("not asked for", s.surplus, "tasks that are there, and were acknowledged to nobody")
	line("unknown outcomes", d.tally.unknown, fmt.Sprintf("calls that were given up (%d claims whose answer was lost were asked for again)", d.tally.repeated))
	fmt.Fprintf(d.out, "     %-22s %5.2f s   from the kill to the next acknowledged write\n", "nobody could write for", d.tally.outage().Seconds())
	if d.tally.failures > 0 {
		fmt.Fprintf(d.out, "     %-22s %7s   %v\n", "calls that failed", thousands(d.tally.failures), errors.Join(d.tally.refused...))
	}
	if !s.ok(d.tasks) || d.tally.unknown > 0 || d.tally.failures > 0 {
		return errCount
	}
	return nil
}
