package term

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client"
)

// These widths keep a line of the drawing within 80 columns.
const (
	stepWidth = 24
	noteWidth = 32
)

// stepMark returns the symbol for a status.
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

// DrawSteps prints the task's steps in layers, one line per step.
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

// whatNext returns the line above the drawing. It is for a task that failed or needs a person, and otherwise "".
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

// AllEnded reports whether all steps have ended.
func AllEnded(steps []wire.Step) bool {
	for i := range steps {
		if !client.TaskStatus(steps[i].Status).Ended() {
			return false
		}
	}
	return true
}

// CountSteps summarizes the steps by status, such as "2 of 5 steps completed, 3 blocked".
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

// stepNote says which steps the step waits for or follows, and why it last failed. It leaves out the failure if the
// step has completed since.
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
	case s.Error == "" || s.Status == "completed": // the failure no longer matters
		return note
	case s.Status == "failed": // the reason matters more than what came before
		return CutTo(Cell(s.Error), noteWidth)
	}
	return CutTo(strings.TrimPrefix(note+"; "+Printable(s.Error), "; "), noteWidth)
}

// namesWithin lists as many names as fit into width characters, but always the first.
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

// layers sorts the steps into layers, as indexes. A step stands in the layer after the last step that it depends on.
// It ignores names that belong to no step.
func layers(steps []wire.Step) [][]int {
	place := make(map[string]int, len(steps))
	for i := range steps {
		place[steps[i].Step] = i
	}
	missing := make([]int, len(steps)) // dependencies without a layer yet
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
