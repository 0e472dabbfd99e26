package sim

import (
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/event"
)

// watchedSchedule is what is known of a schedule since it was set last.
type watchedSchedule struct {
	schedule
	version     uint64
	slot        int64 // it waits for; 0: none
	runs, skips uint64
	done        int64 // the last slot of this plan that was done, whoever set it; 0: none
}

// slotLateMax is how late a slot may be, in milliseconds of the leader's
// calendar, while a leader serves and nothing goes wrong.
const slotLateMax = 5000

// setSchedule takes a schedule that was set.
func (o *watch) setSchedule(w *world, c *command, r *fsm.Result) {
	s := &watchedSchedule{schedule: *c.schedule, version: r.Schedule.Version, slot: r.Schedule.NextRunAt}
	if was := o.schedules[s.name]; was != nil && was.samePlan(&s.schedule) {
		s.done = was.done
		if s.slot != 0 && s.slot < was.slot {
			w.fail("schedule %s went back from slot %d to %d as it was set again", s.name, was.slot, s.slot)
		}
	}
	o.schedules[s.name] = s
}

// runSlots holds what was done of slots against what was to be done: each slot
// that its schedule waits for, and whose time has come, has one task or is
// passed over, and nothing else has a task. The trail tells which task is whose.
func (o *watch) runSlots(w *world, c *command, r *fsm.Result, events []event.Event, now fsm.Stamp) {
	made := map[string]*fsm.Submitted{}
	for i := range r.Submitted {
		by := submittedBy(events, r.Submitted[i].Task.ID)
		if made[by] != nil || by == "" {
			w.fail("task %d, the second of a slot or of none: %q", r.Submitted[i].Task.ID, by)
			return
		}
		made[by] = &r.Submitted[i]
	}
	for _, run := range c.runs {
		s := o.schedules[run.name]
		if s == nil || s.version != run.version || s.slot != run.slot || run.slot == 0 || run.slot > now.T {
			continue
		}
		if done := made["schedule "+run.name]; done != nil {
			delete(made, "schedule "+run.name)
			s.runs++
			o.slots++
			o.submit(w, &s.task, done, now)
		} else {
			s.skips++
			if s.overlap && !run.skip {
				w.fail("no task of the slot %d of schedule %s", run.slot, run.name)
			}
		}
		o.moveOn(w, s, run, now)
	}
	for by, extra := range made { // one says it
		w.fail("task %d by %s: no slot waited for it", extra.Task.ID, by)
		return
	}
}

// moveOn lets the schedule wait for its next slot: the one behind, unless that
// was missed, too.
func (o *watch) moveOn(w *world, s *watchedSchedule, run slotRun, now fsm.Stamp) {
	if s.cron != "" && run.slot <= s.done || run.slot < s.done {
		w.fail("slot %d of schedule %s is done again, %d was", run.slot, s.name, s.done)
	}
	s.slot, s.done = run.next, run.slot
	before := run.next - s.period() // the last slot that was left out, or the one that was done
	switch {
	case before < run.slot || (run.next-run.slot)%s.period() != 0:
		w.fail("behind slot %d of schedule %s comes %d, it runs every %d ms", run.slot, s.name, run.next, s.period())
	case run.skip && (!s.skipLate || run.slot > now.T-slotMissedAfter || before > now.T-slotMissedAfter):
		w.fail("slot %d of schedule %s is passed over up to %d at T=%d", run.slot, s.name, run.next, now.T)
	case before > run.slot && before > now.T:
		w.fail("slot %d of schedule %s is left out at T=%d", before, s.name, now.T)
	}
}

// submittedBy returns what the trail says of who submitted the task.
func submittedBy(events []event.Event, id uint64) string {
	for i := range events {
		if events[i].TaskID == id && events[i].Kind == event.Submitted {
			return events[i].Message
		}
	}
	return ""
}

// lastSlots holds the schedules of a replica that has everything, at the end,
// against what was seen: one task or one recorded skip for each slot, and none
// that nobody did.
func (o *watch) lastSlots(w *world, machine *fsm.Machine, now int64) {
	if len(machine.Schedules()) != len(o.schedules) {
		w.fail("%d schedules at the end, %d are to be", len(machine.Schedules()), len(o.schedules))
	}
	for _, v := range machine.Schedules() {
		s := o.schedules[v.Name]
		switch {
		case s == nil:
			w.fail("schedule %s is there at the end, it was deleted", v.Name)
		case v.Version != s.version || v.NextRunAt != s.slot || v.Skipped != s.skips:
			w.fail("schedule %s waits for %d, %d slots were passed over; it should wait for %d, with %d", v.Name, v.NextRunAt, v.Skipped, s.slot, s.skips)
		case s.slot == 0 && !s.paused:
			w.fail("schedule %s waits for nothing", v.Name)
		case s.slot != 0 && now-s.slot > slotLateMax:
			w.fail("slot %d of schedule %s is %d ms late at the end", s.slot, v.Name, now-s.slot)
		}
	}
}

// acted takes the tasks that an action changed: which these are, only the model
// tells.
func (o *watch) acted(w *world, c *command, acted []actedOn, now fsm.Stamp) {
	for _, a := range acted {
		t := o.tasks[a.id]
		if t == nil {
			w.fail("done with task %d, which was deleted, or never was: %v", a.id, c)
			return
		}
		switch {
		case a.after == nil:
			if t.holder != 0 {
				w.fail("task %d was deleted: it is held", a.id)
			}
			delete(o.tasks, a.id)
			o.deleted(a.id)
			o.keyless(t)
			continue
		case c.action == verbRetry:
			if t.holder != 0 {
				o.end(t, now)
			}
			t.runAt = 0
			o.retried(a.id, now)
		}
		switch {
		case !ended(a.after.status):
			t.endedU, t.endedT = -1, -1
			o.livesAgain(w, t, now)
		case t.endedU < 0:
			t.endedU, t.endedT = now.U, now.T
		}
	}
}
