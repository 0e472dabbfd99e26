package sim

import (
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/jepsen/sim/model"
)

// watchedSchedule is what is known of a schedule since it was set last.
type watchedSchedule struct {
	model.Schedule
	version     uint64
	slot        int64 // it waits for; 0: none
	runs, skips uint64
	done        int64 // the last slot of this plan that was done, whoever set it; 0: none
}

// slotLateMax is how late a slot may be, in milliseconds of the leader's
// calendar, while a leader serves and nothing goes wrong.
const slotLateMax = 5000

// setSchedule takes a schedule that was set.
func (o *watch) setSchedule(w *world, c *model.Command, r *fsm.Result) {
	s := &watchedSchedule{Schedule: *c.Schedule, version: r.Schedule.Version, slot: r.Schedule.NextRunAt}
	if was := o.schedules[s.Name]; was != nil && was.SamePlan(&s.Schedule) {
		s.done = was.done
		if s.slot != 0 && s.slot < was.slot {
			w.fail("schedule %s went back from slot %d to %d as it was set again", s.Name, was.slot, s.slot)
		}
	}
	o.schedules[s.Name] = s
}

// runSlots holds what was done of slots against what was to be done: each slot
// that its schedule waits for, and whose time has come, has one task or is
// passed over, and nothing else has a task. The trail tells which task is whose.
func (o *watch) runSlots(w *world, c *model.Command, r *fsm.Result, events []event.Event, now fsm.Stamp) {
	made := map[string]*fsm.Submitted{}
	for i := range r.Submitted {
		by := submittedBy(events, r.Submitted[i].Task.ID)
		if made[by] != nil || by == "" {
			w.fail("task %d, the second of a slot or of none: %q", r.Submitted[i].Task.ID, by)
			return
		}
		made[by] = &r.Submitted[i]
	}
	for _, run := range c.Runs {
		s := o.schedules[run.Name]
		if s == nil || s.version != run.Version || s.slot != run.Slot || run.Slot == 0 || run.Slot > now.T {
			continue
		}
		if done := made["schedule "+run.Name]; done != nil {
			delete(made, "schedule "+run.Name)
			s.runs++
			o.slots++
			o.submit(w, &s.Task, done, now)
		} else {
			s.skips++
			if s.Overlap && !run.Skip {
				w.fail("no task of the slot %d of schedule %s", run.Slot, run.Name)
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
func (o *watch) moveOn(w *world, s *watchedSchedule, run model.SlotRun, now fsm.Stamp) {
	if s.Cron != "" && run.Slot <= s.done || run.Slot < s.done {
		w.fail("slot %d of schedule %s is done again, %d was", run.Slot, s.Name, s.done)
	}
	s.slot, s.done = run.Next, run.Slot
	before := run.Next - periodOf(&s.Schedule) // the last slot that was left out, or the one that was done
	switch {
	case before < run.Slot || (run.Next-run.Slot)%periodOf(&s.Schedule) != 0:
		w.fail("behind slot %d of schedule %s comes %d, it runs every %d ms", run.Slot, s.Name, run.Next, periodOf(&s.Schedule))
	case run.Skip && (!s.SkipLate || run.Slot > now.T-slotMissedAfter || before > now.T-slotMissedAfter):
		w.fail("slot %d of schedule %s is passed over up to %d at T=%d", run.Slot, s.Name, run.Next, now.T)
	case before > run.Slot && before > now.T:
		w.fail("slot %d of schedule %s is left out at T=%d", before, s.Name, now.T)
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
		case s.slot == 0 && !s.Paused:
			w.fail("schedule %s waits for nothing", v.Name)
		case s.slot != 0 && now-s.slot > slotLateMax:
			w.fail("slot %d of schedule %s is %d ms late at the end", s.slot, v.Name, now-s.slot)
		}
	}
}

// acted takes the tasks that an action changed: which these are, only the model
// tells.
func (o *watch) acted(w *world, c *model.Command, acted []model.ActedOn, now fsm.Stamp) {
	for _, a := range acted {
		t := o.tasks[a.ID]
		if t == nil {
			w.fail("done with task %d, which was deleted, or never was: %v", a.ID, c)
			return
		}
		switch {
		case a.After == nil:
			if t.holder != 0 {
				w.fail("task %d was deleted: it is held", a.ID)
			}
			delete(o.tasks, a.ID)
			o.deleted(a.ID)
			o.keyless(t)
			continue
		case c.Action == model.VerbRetry:
			if t.holder != 0 {
				o.end(t, now)
			}
			t.runAt = 0
			o.retried(a.ID, now)
		}
		switch {
		case !model.Ended(a.After.Status):
			t.endedU, t.endedT = -1, -1
			o.livesAgain(w, t, now)
		case t.endedU < 0:
			t.endedU, t.endedT = now.U, now.T
		}
	}
}
