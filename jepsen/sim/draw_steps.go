package sim

import (
	"fmt"
	"slices"

	"github.com/claimq/claimq/fsm"
)

// parentsKnown reports whether this world has parents now.
func (w *world) parentsKnown() bool {
	return w.profile.parents > 0 && w.knows(levelSteps)
}

// newWork draws a task to submit, which may have steps.
func (w *world) newWork(d *dice, name string, mine bool) fsm.NewTask {
	if w.parentsKnown() && d.in(w.profile.parents) {
		return w.newParent(d, name, mine)
	}
	return w.newTask(d, name, mine)
}

// newParent draws a task with steps.
func (w *world) newParent(d *dice, name string, mine bool) fsm.NewTask {
	t := w.newTask(d, name, mine)
	t.RunAt, t.DelayMS, t.ExpiresAt, t.Group = 0, 0, 0, ""
	if d.in(300) { // what is to be done is said by the steps
		t.Params, t.Payload = nil, nil
	}
	count := int(d.in1(5))
	if d.in(60) {
		count += int(d.n(20))
	}
	t.Parent = &fsm.NewParent{Steps: make([]fsm.NewStep, count), ByClaim: d.in(500), Continue: d.in(400)}
	for i := range t.Parent.Steps {
		s := &t.Parent.Steps[i]
		s.Name = fmt.Sprintf("s%d", i)
		s.Task = w.newTask(d, name+"."+s.Name, false)
		s.Task.RetentionMS, s.Task.UniqueActive, s.Task.KeyOfType = 0, false, false
		if d.in(600) { // most steps are to be done
			s.Task.RunAt, s.Task.DelayMS, s.Task.ExpiresAt = 0, 0, 0
		}
	}
	link(t.Parent, d)
	return t
}

// link draws what the steps depend on: a chain, one that all others follow, one
// that follows all others, both, nothing, or anything. The order in which they may
// be done is another one than the plan's.
func link(p *fsm.NewParent, d *dice) {
	order := make([]uint16, len(p.Steps)) // places, each behind all that it depends on
	for i := range order {
		j := int(d.n(int64(i + 1)))
		order[i], order[j] = order[j], uint16(i)
	}
	shape, last := d.n(6), len(order)-1
	for i := 1; i <= last; i++ {
		var on []uint16
		switch {
		case shape == 0:
			on = order[i-1 : i]
		case shape == 1, shape == 2 && i < last:
			on = order[:1]
		case shape == 2, shape == 3 && i == last:
			on = order[:i]
		case shape == 4:
			for _, before := range order[:i] {
				if d.in(400) {
					on = append(on, before)
				}
			}
		}
		p.Steps[order[i]].DependsOn = slices.Sorted(slices.Values(on))
	}
}

// familyID returns the id of a parent or of a step, if there are any: mostly of a
// late one.
func (w *world) familyID(d *dice) uint64 {
	if !w.parentsKnown() || d.in(200) {
		return w.anyID(d)
	}
	id := w.parentID(d)
	if steps := w.state.Steps(id); len(steps) > 0 && d.in(600) {
		return id + uint64(d.in1(int64(len(steps))))
	}
	return id
}

// readyID returns the id of a parent whose finalization may be claimed, mostly of
// one whose steps have ended, or that of any.
func (w *world) readyID(d *dice) uint64 {
	var over, some []uint64
	for _, t := range w.tasks() {
		switch {
		case t.Status != fsm.StatusRunning:
		case w.over(t.ID):
			over = append(over, t.ID)
		case w.anyDone(t.ID):
			some = append(some, t.ID)
		}
	}
	if len(over) > 0 && d.in(700) {
		some = over
	}
	if len(some) == 0 || d.in(150) {
		return w.parentID(d)
	}
	return some[d.n(int64(len(some)))]
}

// parentID returns the id of a parent, mostly of one that runs, or that of any
// task.
func (w *world) parentID(d *dice) uint64 {
	var all, live []uint64
	for _, t := range w.tasks() {
		switch {
		case t.Opts().Parent == nil:
		case t.Status == fsm.StatusRunning:
			live = append(live, t.ID)
		default:
			all = append(all, t.ID)
		}
	}
	if len(live) > 0 && d.in(750) {
		all = live
	}
	if len(all) == 0 || d.in(30) {
		return w.anyID(d)
	}
	return all[max(int64(len(all))-1-d.n(4), 0)]
}
