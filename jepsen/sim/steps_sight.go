package sim

import (
	"fmt"
	"maps"
	"slices"

	"github.com/claimq/claimq/jepsen/sim/model"
)

// sighted does a step that only feature level 3 knows; below it nothing.
func (w *world) sighted(s step, d *dice, name string) {
	if w.model.Level < model.SightLevel {
		return
	}
	switch s.kind {
	case stepSchedule:
		w.stepSchedule(d, name)
	case stepAct:
		w.call(d, name, w.act(d), false, nil)
	default:
		w.slot(d, name)
	}
}

// stepSchedule sets a schedule, or deletes one.
func (w *world) stepSchedule(d *dice, name string) {
	s := &model.Schedule{Name: fmt.Sprintf("s%d", 1+d.n(3))}
	if d.in(150) {
		w.call(d, name, &model.Command{Verb: model.VerbDeleteSchedule, Schedule: s}, false, nil)
		return
	}
	s.Task = w.newTask(d, name, false)
	s.Task.RunAt, s.Task.ExpiresAt = 0, 0
	s.EveryMS, s.Overlap = pick[int64](d, 1000, 5000, 30_000), d.in(400)
	if s.EveryMS == 1000 && w.profile.long {
		s.Overlap = false // else there are hundreds of tasks
	}
	if d.in(600) {
		s.EveryMS, s.Cron = 0, pick(d, minutely, minutely, fiveMinutely)
	}
	s.SkipLate, s.Paused = d.in(300), d.in(100)
	w.call(d, name, &model.Command{Verb: model.VerbSetSchedule, Schedule: s}, true, nil)
}

// act draws an action on the tasks that a filter selects now: until it is done,
// they may have changed.
func (w *world) act(d *dice) *model.Command {
	c := &model.Command{Verb: model.VerbAct, Action: pick(d, model.VerbRetry, model.VerbCancel, model.VerbDelete)}
	f := &c.Filter
	switch c.Action {
	case model.VerbRetry:
		c.Add = int32(d.n(2))
		f.Status = pick(d, model.Failed, model.Failed, model.Claimed, model.Scheduled, "")
	case model.VerbCancel:
		f.Status = pick(d, model.Pending, model.Scheduled, model.Claimed, "")
		if w.parentsKnown() && d.in(300) {
			f.Status = pick(d, model.Blocked, model.Running)
		}
	default:
		f.Status = pick(d, model.Completed, model.Failed, model.Cancelled, "")
	}
	if d.in(500) {
		f.Kind = w.typeName(d)
	}
	if d.in(150) {
		f.Worker = w.worker(d).name
	}
	if d.in(200) {
		f.Labels = newLabels(d)
	}
	if d.in(200) {
		f.After = w.calendar() - d.n(20_000)
	}
	if d.in(100) {
		f.Before = w.calendar() - d.n(5000)
	}
	if w.parentsKnown() && d.in(250) {
		f.Kind, f.Worker, f.Of = "", "", w.parentID(d)
	}
	for _, t := range w.model.Tasks {
		if t != nil && (f.Matches(t) || d.in(30)) && len(c.IDs) < 40 {
			c.IDs = append(c.IDs, t.ID)
		}
	}
	if len(c.IDs) == 0 {
		c.IDs = []uint64{1}
	}
	return c
}

// slot waits until about the next slot of a schedule, and then lets something go
// wrong, or the schedule be set again.
func (w *world) slot(d *dice, name string) {
	l, next := w.leader, w.model.NextSlot()
	if l == nil || next == 0 {
		w.stepSchedule(d, name)
		return
	}
	if wait := next - l.clock.Now().T; wait < 60_000 {
		w.say("%s's next slot is in %d ms", l.replica.name, wait)
		early := 30 * millisecond
		if d.in(500) {
			early = (w.profile.netMS + w.profile.entryMS) * millisecond
		}
		w.until(w.now + max(wait*millisecond+d.n(40*millisecond)-early, 0))
	}
	if w.failure != "" {
		return
	}
	switch k := pick(d, stepDepose, stepDepose, stepPause, stepWall, stepRestart, stepSchedule, stepSchedule, stepSchedule); k {
	case stepSchedule:
		for _, s := range slices.Sorted(maps.Keys(w.model.Schedules)) {
			if again := w.model.Schedules[s].Schedule; again.Next == next {
				w.call(d, name, &model.Command{Verb: model.VerbSetSchedule, Schedule: &again}, true, nil)
				return
			}
		}
	default:
		w.fault(k, d)
	}
}
