package sim

import (
	"github.com/claimq/claimq/cluster/lease"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/cron"
)

const (
	// dutyInterval is how often a leader looks what there is to do, and tickInterval the
	// least time between two ticks for what is due.
	dutyInterval = 500 * millisecond
	tickInterval = 10 * millisecond
	// slotMissedAfter is how late a slot may be done that is not to be made up,
	// in milliseconds.
	slotMissedAfter = 60_000
	slotsAtOnce     = 1000 // of one entry
)

// chore is something that a leader does beside serving whenever it is due.
type chore struct {
	looks   int   // counts the looks at it: an older one is over
	busy    bool  // it is on its way
	planned int64 // when it is due, by T; 0: nothing is
}

// look looks at the chore again so much later, unless another look comes before.
func (l *leader) look(c *chore, after int64, again func()) {
	c.looks++
	mine := c.looks
	l.wake(after, func() {
		if mine == c.looks {
			again()
		}
	})
}

// until notes when the chore is due, and returns how long nothing is, in nanoseconds.
func (c *chore) until(now, next int64, some bool) int64 {
	c.planned = 0
	if !some {
		return dutyInterval
	}
	c.planned = next
	return min(max(next-now, 0)*millisecond, dutyInterval)
}

// noteDue looks at the chores for which an entry brought something that comes earlier
// than what they wait for.
func (l *leader) noteDue() {
	note := func(c *chore, next int64, some bool, look func()) {
		if l.serving && !c.busy && some && (c.planned == 0 || next < c.planned) {
			look()
		}
	}
	next, some := l.machine.NextDue()
	note(&l.ticks, next, some, l.duties)
	next, some = l.machine.NextSlot()
	note(&l.slots, next, some, l.runSlots)
}

// duties logs a tick when one is due, and lets ended tasks be evicted.
func (l *leader) duties() {
	if l.over {
		return
	}
	next := dutyInterval
	if !l.ticks.busy {
		if next = l.untilTick(); next == 0 {
			next = tickInterval
			l.ticks.busy = true
			l.decide(command.Tick{}, func(outcome) { l.ticks.busy = false })
		}
	}
	l.evictWhileOver()
	l.look(&l.ticks, next, l.duties)
}

func (l *leader) untilTick() int64 {
	m, now := l.machine, l.clock.Now()
	if lease.TickDue(now, m.Stamp(), m.ClaimCount()+m.FinalizationCount()) {
		l.ticks.planned = 0
		return 0
	}
	next, some := m.NextDue()
	return l.ticks.until(now.T, next, some)
}

// evictWhileOver evicts ended tasks if they take more memory than they may.
func (l *leader) evictWhileOver() {
	most := l.w.profile.endedBytes
	if most == 0 || l.evicting || l.machine.EndedBytes() <= most || command.LevelOf(command.Evict{}) > l.machine.Level() {
		return
	}
	l.evicting = true
	l.decide(command.Evict{Bytes: most * 3 / 4}, func(outcome) { l.evicting = false })
}

// sleepUntilDue sleeps until the earliest lease timer.
func (l *leader) sleepUntilDue() {
	if l.expiries.busy || l.over {
		return
	}
	begun, wait := l.replica.Mono(), l.timers.Wait(l.clock.Now().U)
	l.look(&l.expiries, int64(wait), func() {
		l.expiries.busy = true
		l.onTime(begun, wait, l.expireDue)
	})
}

// expireDue proposes the expiry of what is due.
func (l *leader) expireDue() {
	if l.over {
		return
	}
	var expired []command.Lease
	for more := true; more && len(expired) == 0; {
		expired, more = l.timers.Due(l.read, l.clock.Now().U)
	}
	if len(expired) == 0 {
		l.expiries.busy = false
		l.sleepUntilDue()
		return
	}
	c := command.Expire{Items: expired}
	begun := l.replica.Mono()
	l.w.keepLate(c)
	l.decide(c, func(o outcome) {
		l.timers.Proposed(expired, o.result.Expired)
		if o.fate != written {
			l.wake(retryDuty, l.expireDue)
			return
		}
		l.onTime(begun, 0, l.expireDue)
	})
}

// runSlots proposes the slots of schedules that are due, as the leader of package
// cluster does, and sleeps until the next.
func (l *leader) runSlots() {
	if l.over {
		return
	}
	next := dutyInterval
	if !l.slots.busy {
		now := l.clock.Now().T
		due, some := l.machine.NextSlot()
		if next = l.slots.until(now, due, some); next == 0 {
			l.proposeSlots(now)
			next = dutyInterval
		}
	}
	l.look(&l.slots, next, l.runSlots)
}

func (l *leader) proposeSlots(now int64) {
	var c command.RunSchedules
	for _, v := range l.machine.DueSchedules(now, slotsAtOnce) {
		c.Items = append(c.Items, slotOf(v, now))
	}
	l.slots.busy = true
	l.w.keepLate(c)
	l.decide(c, func(o outcome) {
		l.slots.busy = false
		if o.fate != written {
			l.wake(retryDuty, l.runSlots)
			return
		}
		l.runSlots()
	})
	if !l.w.quiet && newDice(l.w.seed, 1<<42+uint64(l.w.now)).in(l.w.profile.double) {
		l.decide(c, nil)
	}
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
	l.wake(wait, func() {
		l.propose(&proposal{c: c, sentAt: m.sentAt, done: func(o outcome) { m.reply(replyOf(o)) }})
	})
}

// planOf is when the schedule runs.
func planOf(s *fsm.Schedule) cron.Plan { return cron.Plan{Cron: s.Cron, EveryMS: s.EveryMS} }
