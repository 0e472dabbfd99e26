package sim

import (
	"time"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/cron"
)

const (
	// slotMissedAfter is how late a slot may be done that is not to be made up,
	// in milliseconds.
	slotMissedAfter = 60_000
	slotsAtOnce     = 1000 // of one entry
)

// slots proposes the slots of schedules that are due, as the leader of package
// cluster does, and sleeps until the next.
func (l *leader) slots() {
	if l.over {
		return
	}
	l.slotsAt++
	mine := l.slotsAt
	next := dutyInterval
	if !l.slotsGo {
		next = l.runDueSlots()
	}
	l.wake(time.Duration(next), func() {
		if mine == l.slotsAt {
			l.slots()
		}
	})
}

// runDueSlots proposes what is due. It returns how long nothing is, in
// nanoseconds.
func (l *leader) runDueSlots() int64 {
	m, now := l.replica.machine, l.clock.Now().T
	l.plannedSlot = 0
	next, some := m.NextSlot()
	if !some {
		return dutyInterval
	}
	if l.plannedSlot = next; next > now {
		return min((next-now)*millisecond, dutyInterval)
	}
	var c command.RunSchedules
	for _, v := range m.DueSchedules(now, slotsAtOnce) {
		c.Items = append(c.Items, slotOf(v, now))
	}
	l.slotsGo = true
	l.w.keepLate(c)
	l.propose(&proposal{c: c, sentAt: l.w.now, done: func(o outcome) {
		l.slotsGo = false
		if o.fate != written {
			l.wake(time.Duration(retryDuty), l.slots)
			return
		}
		l.slots()
	}})
	if !l.w.quiet && newDice(l.w.seed, 1<<42+uint64(l.w.now)).in(l.w.profile.double) {
		l.propose(&proposal{c: c, sentAt: l.w.now, done: func(outcome) {}})
	}
	return dutyInterval
}

// slotOf returns what is to be done of the slot that the schedule waits for.
func slotOf(v *fsm.ScheduleView, now int64) command.ScheduleRun {
	run := command.ScheduleRun{Name: v.Name, Version: v.Version, Slot: v.NextRunAt}
	latest := now
	if missed := now - slotMissedAfter; v.CatchUpSkip && run.Slot < missed {
		run.Skip, latest = true, missed-1
	}
	times, err := planOf(&v.Schedule).Read()
	if err == nil {
		run.Next, _ = times.Following(run.Slot, latest)
	}
	return run
}

// noteSlot wakes whoever runs slots if an entry brought one that comes earlier
// than what it sleeps until.
func (l *leader) noteSlot() {
	if !l.serving || l.slotsGo {
		return
	}
	if next, some := l.replica.machine.NextSlot(); some && (l.plannedSlot == 0 || next < l.plannedSlot) {
		l.slots()
	}
}

// setMax is how long it takes at most from the look at the clock that a schedule's
// first slot is worked out by until the schedule is proposed.
const setMax = 60 * millisecond

// serveSchedule works out the first slot, and then proposes the schedule: a slot
// may come in between.
func (l *leader) serveSchedule(m *message, c command.SetSchedule) {
	c.Schedule.NextRunAt, _ = planOf(&c.Schedule).Next(l.clock.Now().T)
	d := newDice(l.w.seed, 1<<43+uint64(l.w.now))
	wait := d.n(setMax)
	if d.in(500) {
		wait = 0
	}
	l.wake(time.Duration(wait), func() {
		l.propose(&proposal{c: c, sentAt: m.sentAt, done: func(o outcome) { m.reply(replyOf(o)) }})
	})
}

// planOf is when the schedule runs.
func planOf(s *fsm.Schedule) cron.Plan { return cron.Plan{Cron: s.Cron, EveryMS: s.EveryMS} }
