package term

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client"
)

// Widths that keep a line of the drawing within 80 columns.
const (
	stepWidth = 24
	noteWidth = 32
)

// stepMark is a status at a glance.
func stepMark(status string) string {
	switch client.TaskStatus(status) {
	case client.StatusCompleted:
		return "✓"
	case client.StatusClaimed:
		return "▶"
	case client.StatusPending:
		return "○"
	case client.StatusScheduled:
		return "◷"
	case client.StatusBlocked:
		return "·"
	case client.StatusFailed:
		return "✗"
	case client.StatusCancelled:
		return "⊘"
	case client.StatusRunning: // steps have no steps
	}
	return "?"
}

// DrawSteps prints the task's steps in layers, a line a step.
func (a *App) DrawSteps(t *wire.Task) error {
	if err := a.Sayf("task %d (%s): %s, %s", t.ID, Printable(t.TaskType), Printable(t.Status), CountSteps(t.Steps)); err != nil {
		return err
	}
	if next := a.whatNext(t); next != "" {
		if err := a.Sayf("%s", next); err != nil {
			return err
		}
	}
	status := make(map[string]string, len(t.Steps))
	for i := range t.Steps {
		status[t.Steps[i].Step] = t.Steps[i].Status
	}
	rows := [][]string{{"", "", "", "", ""}}
	for depth, layer := range layers(t.Steps) {
		if depth > 0 {
			rows = append(rows, []string{"↓", "", "", "", ""})
		}
		for _, i := range layer {
			s := &t.Steps[i]
			rows = append(rows, []string{
				stepMark(s.Status), CutTo(Cell(s.Step), stepWidth), strconv.FormatUint(s.ID, 10), Cell(s.Status), stepNote(s, status),
			})
		}
	}
	var drawn bytes.Buffer
	if err := Columns(&drawn, rows); err != nil {
		return err
	}
	for line := range strings.Lines(drawn.String()) {
		if err := a.Sayf("%s", strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// whatNext is what stands above the drawing of a task that failed, or that
// somebody has to do something about; "" for nothing.
func (a *App) whatNext(t *wire.Task) string {
	switch {
	case t.Status == "failed" && t.Error != "":
		return "error: " + a.Text(t.Error)
	case t.Status == "running" && t.CancelRequested:
		return "It was asked to be cancelled: it ends when no step is claimed any more."
	case t.Status == "running" && t.Finalize == client.FinalizeClaim && AllEnded(t.Steps):
		return fmt.Sprintf("All steps have ended: a processor ends the task, as 'claimq finalize %d' does.", t.ID)
	}
	return ""
}

// AllEnded reports whether no step can change any more.
func AllEnded(steps []wire.Step) bool {
	for i := range steps {
		if !client.TaskStatus(steps[i].Status).Ended() {
			return false
		}
	}
	return true
}

// CountSteps is how many of the steps are how, as "2 of 5 steps completed, 3
// blocked".
func CountSteps(steps []wire.Step) string {
	counts := map[string]int{}
	for i := range steps {
		counts[steps[i].Status]++
	}
	text := fmt.Sprintf("%d of %s completed", counts["completed"], Count(len(steps), "step"))
	for _, status := range []string{"claimed", "pending", "scheduled", "blocked", "failed", "cancelled"} {
		if counts[status] > 0 {
			text += fmt.Sprintf(", %d %s", counts[status], status)
		}
	}
	return text
}

// stepNote is what a blocked step waits for, or what another comes after, and why
// it failed last, unless it has completed since.
func stepNote(s *wire.Step, status map[string]string) string {
	verb, names := "after ", s.DependsOn
	if s.Status == "blocked" {
		verb, names = "waits for ", nil
		for _, name := range s.DependsOn {
			if status[name] != "completed" {
				names = append(names, name)
			}
		}
	}
	note := ""
	if len(names) > 0 {
		note = verb + namesWithin(names, noteWidth-len(verb))
	}
	switch {
	case s.Error == "" || s.Status == "completed": // it is over
		return note
	case s.Status == "failed": // why is worth more than after what
		return CutTo(Cell(s.Error), noteWidth)
	}
	return CutTo(strings.TrimPrefix(note+"; "+Printable(s.Error), "; "), noteWidth)
}

// namesWithin lists as many names as there is room for in width characters, the
// first in any case.
func namesWithin(names []string, width int) string {
	if text := Printable(strings.Join(names, ", ")); displayWidth(text) <= width {
		return text
	}
	text := ""
	for i, name := range names {
		more := ""
		if left := len(names) - i - 1; left > 0 {
			more = fmt.Sprintf(" and %d more", left)
		}
		if i == 0 {
			text = CutTo(Cell(name), max(width-len(more), 2)) + more
			continue
		}
		longer := Printable(strings.Join(names[:i+1], ", ")) + more
		if displayWidth(longer) > width {
			break
		}
		text = longer
	}
	return text
}

// layers sorts the steps, by their places: one stands in the layer after the last
// of those that it depends on. Names that no step has are passed over.
func layers(steps []wire.Step) [][]int {
	place := make(map[string]int, len(steps))
	for i := range steps {
		place[steps[i].Step] = i
	}
	missing := make([]int, len(steps)) // dependencies that have no layer yet
	dependents := make([][]int, len(steps))
	var layer []int
	for i := range steps {
		for _, name := range steps[i].DependsOn {
			if on, ok := place[name]; ok {
				missing[i]++
				dependents[on] = append(dependents[on], i)
			}
		}
		if missing[i] == 0 {
			layer = append(layer, i)
		}
	}
	var all [][]int
	for len(layer) > 0 {
		all = append(all, layer)
		free := make(map[int]bool)
		for _, i := range layer {
			for _, d := range dependents[i] {
				if missing[d]--; missing[d] == 0 {
					free[d] = true
				}
			}
		}
		layer = nil
		for i := range steps {
			if free[i] {
				layer = append(layer, i)
			}
		}
	}
	return all
}
