package sim

import (
	"fmt"
	"maps"
	"slices"
)

// sighted does a step that only feature level 3 knows; below it nothing.
func (w *world) sighted(s step, d *dice, name string) {
	if w.model.level < sightLevel {
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
	s := &schedule{name: fmt.Sprintf("s%d", 1+d.n(3))}
	if d.in(150) {
		w.call(d, name, &command{verb: verbDeleteSchedule, schedule: s}, false, nil)
		return
	}
	s.task = w.newTask(d, name, false)
	s.task.runAt, s.task.expiresAt = 0, 0
	s.everyMS, s.overlap = pick[int64](d, 1000, 5000, 30_000), d.in(400)
	if s.everyMS == 1000 && w.profile.long {
		s.overlap = false // else there are hundreds of tasks
	}
	if d.in(600) {
		s.everyMS, s.cron = 0, pick(d, minutely, minutely, fiveMinutely)
	}
	s.skipLate, s.paused = d.in(300), d.in(100)
	w.call(d, name, &command{verb: verbSetSchedule, schedule: s}, true, nil)
}

// act draws an action on the tasks that a filter selects now: until it is done,
// they may have changed.
func (w *world) act(d *dice) *command {
	c := &command{verb: verbAct, action: pick(d, verbRetry, verbCancel, verbDelete)}
	f := &c.filter
	switch c.action {
	case verbRetry:
		c.add = int32(d.n(2))
		f.status = pick(d, failed, failed, claimed, scheduled, "")
	case verbCancel:
		f.status = pick(d, pending, scheduled, claimed, "")
		if w.parentsKnown() && d.in(300) {
			f.status = pick(d, blocked, running)
		}
	default:
		f.status = pick(d, completed, failed, cancelled, "")
	}
	if d.in(500) {
		f.kind = w.typeName(d)
	}
	if d.in(150) {
		f.worker = w.worker(d).name
	}
	if d.in(200) {
		f.labels = newLabels(d)
	}
	if d.in(200) {
		f.after = w.calendar() - d.n(20_000)
	}
	if d.in(100) {
		f.before = w.calendar() - d.n(5000)
	}
	if w.parentsKnown() && d.in(250) {
		f.kind, f.worker, f.of = "", "", w.parentID(d)
	}
	for _, t := range w.model.tasks {
		if t != nil && (f.matches(t) || d.in(30)) && len(c.ids) < 40 {
			c.ids = append(c.ids, t.id)
		}
	}
	if len(c.ids) == 0 {
		c.ids = []uint64{1}
	}
	return c
}

// slot waits until about the next slot of a schedule, and then lets something go
// wrong, or the schedule be set anew.
func (w *world) slot(d *dice, name string) {
	l, next := w.leader, w.model.nextSlot()
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
		for _, s := range slices.Sorted(maps.Keys(w.model.schedules)) {
			if again := w.model.schedules[s].schedule; again.next == next {
				w.call(d, name, &command{verb: verbSetSchedule, schedule: &again}, true, nil)
				return
			}
		}
	default:
		w.fault(k, d)
	}
}
