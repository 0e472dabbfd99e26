package sim

import (
	"github.com/claimq/claimq/cluster/lease"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/cron"
)

const (
	dutyInterval = 20 * millisecond // how often a leader looks what there is to do
	// slotMissedAfter is how late a slot may be done that is not to be made up,
	// in milliseconds.
	slotMissedAfter = 60_000
	slotsAtOnce     = 1000 // of one entry
)

// duties does what is due beside the ends of leases, and looks again soon.
func (l *leader) duties() {
	if l.over {
		return
	}
	m, now := l.machine, l.clock.Now()
	next, some := m.NextDue()
	if due := some && next <= now.T; !l.ticking && (due || lease.TickDue(now, m.Stamp(), m.ClaimCount()+m.FinalizationCount())) {
		l.ticking = true
		l.decide(command.Tick{}, func(outcome) { l.ticking = false })
	}
	if next, some = m.NextSlot(); !l.running && some && next <= now.T {
		l.runSlots(now.T)
	}
	l.evictWhileOver()
	l.wake(dutyInterval, l.duties)
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

// sleepUntilDue sleeps until the earliest lease timer, in place of an earlier sleep.
func (l *leader) sleepUntilDue() {
	if l.expiring || l.over {
		return
	}
	l.sleeps++
	mine, begun, wait := l.sleeps, l.replica.Mono(), l.timers.Wait(l.clock.Now().U)
	l.wake(int64(wait), func() {
		if mine == l.sleeps {
			l.expiring = true
			l.onTime(begun, wait, l.expireDue)
		}
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
		l.expiring = false
		l.sleepUntilDue()
		return
	}
	c := command.Expire{Items: expired}
	begun := l.replica.Mono()
	l.w.late = lastOf(lateMax, l.w.late, command.Command(c))
	l.decide(c, func(o outcome) {
		l.timers.Proposed(expired, o.result.Expired)
		if !o.written() {
			l.wake(retryDuty, l.expireDue)
			return
		}
		l.onTime(begun, 0, l.expireDue)
	})
}

// runSlots proposes the slots of schedules that are due, as the leader of package
// cluster does.
func (l *leader) runSlots(now int64) {
	var c command.RunSchedules
	for _, v := range l.machine.DueSchedules(now, slotsAtOnce) {
		c.Items = append(c.Items, slotOf(v, now))
	}
	l.running = true
	l.w.late = lastOf(lateMax, l.w.late, command.Command(c))
	l.decide(c, func(outcome) { l.running = false })
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
	times, err := planOf(&v.Schedule).Read(nil)
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
	if times, err := planOf(&c.Schedule).Read(nil); err == nil {
		c.Schedule.NextRunAt, _ = times.Next(l.clock.Now().T)
	}
	d := newDice(l.w.seed, 1<<43+uint64(l.w.now))
	wait := d.n(setMax)
	if d.in(500) {
		wait = 0
	}
	l.wake(wait, func() {
		l.propose(&proposal{c: c, sentAt: m.sentAt, done: m.reply})
	})
}

// planOf is when the schedule runs.
func planOf(s *fsm.Schedule) cron.Plan { return cron.Plan{Cron: s.Cron, EveryMS: s.EveryMS} }
