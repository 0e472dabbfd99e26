package sim

import (
	"fmt"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// schedule sets a schedule, or deletes one.
func (w *world) schedule(d *dice, name string) {
	s := fsm.Schedule{Name: fmt.Sprintf("s%d", 1+d.n(3))}
	if d.in(150) {
		w.call(d, name, command.DeleteSchedule{Name: s.Name}, false, nil)
		return
	}
	s.Task = w.newTask(d, name, false)
	s.Task.RunAt, s.Task.ExpiresAt = 0, 0
	s.EveryMS, s.OverlapAllow = pick[int64](d, 1000, 5000, 30_000), d.in(400)
	if s.EveryMS == 1000 && w.profile.long {
		s.OverlapAllow = false // else there are hundreds of tasks
	}
	if d.in(600) {
		s.EveryMS, s.Cron = 0, pick(d, "* * * * *", "* * * * *", "*/5 * * * *")
	}
	s.CatchUpSkip, s.Paused = d.in(300), d.in(100)
	w.call(d, name, command.SetSchedule{Schedule: s}, true, nil)
}

// act draws an action on the tasks that a filter selects now: until it is done,
// they may have changed.
func (w *world) act(d *dice) command.Command {
	c := command.Act{Action: pick(d, command.ActionRetry, command.ActionCancel, command.ActionDelete)}
	f := &c.Filter
	switch c.Action {
	case command.ActionRetry:
		c.AddAttempts = int32(d.n(2))
		f.Status = pick(d, fsm.StatusFailed, fsm.StatusFailed, fsm.StatusClaimed, fsm.StatusScheduled, 0)
	case command.ActionCancel:
		f.Status = pick(d, fsm.StatusPending, fsm.StatusScheduled, fsm.StatusClaimed, 0)
		if w.parentsKnown() && d.in(300) {
			f.Status = pick(d, fsm.StatusBlocked, fsm.StatusRunning)
		}
	default:
		f.Status = pick(d, fsm.StatusCompleted, fsm.StatusFailed, fsm.StatusCancelled, 0)
	}
	if d.in(500) {
		f.Type = w.typeName(d)
	}
	if d.in(150) {
		f.WorkerID = w.worker(d).name
	}
	if d.in(200) {
		f.Labels = newLabels(d)
	}
	if d.in(200) {
		f.CreatedAfter = w.calendar() - d.n(20_000)
	}
	if d.in(100) {
		f.CreatedBefore = w.calendar() - d.n(5000)
	}
	if w.parentsKnown() && d.in(250) {
		f.Type, f.WorkerID, f.ParentID = "", "", w.parentID(d)
	}
	for _, t := range w.tasks() {
		if (f.Matches(t) || d.in(30)) && len(c.IDs) < 40 {
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
	l := w.leader
	next, some := w.state.NextSlot()
	if l == nil || !some {
		w.schedule(d, name)
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
	wrong := pick(d, (*world).depose, (*world).depose, (*world).pause, (*world).jumpWalls, (*world).restart, nil, nil, nil)
	if wrong != nil {
		fault(wrong)(w, d, name)
		return
	}
	for _, v := range w.state.Schedules() {
		if v.NextRunAt == next {
			w.call(d, name, command.SetSchedule{Schedule: v.Schedule}, true, nil)
			return
		}
	}
}
