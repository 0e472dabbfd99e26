package sim

import (
	"github.com/claimq/claimq/cluster/lease"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/cron"
)

const (
	dutyInterval = 20 * millisecond // between checks of a leader
	// slotMissedAfter is the delay after which a slot that is not made up is skipped, in
	// milliseconds.
	slotMissedAfter = 60_000
	slotsAtOnce     = 1000 // in one entry
)

// duties performs all due duties except the ends of leases, and schedules the next check.
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

// evictWhileOver evicts ended tasks while they exceed their memory.
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

// expireDue proposes the expiry of due leases.
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

// runSlots proposes the due slots of schedules, like the leader in package cluster.
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

// slotOf returns what to do with the slot that the schedule waits for.
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

// setMax bounds the time from reading the clock for a schedule's first slot until the
// schedule is proposed.
const setMax = 60 * millisecond

// serveSchedule computes the first slot, and then proposes the schedule. A slot may come in
// between.
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

// planOf returns the plan of the schedule.
func planOf(s *fsm.Schedule) cron.Plan { return cron.Plan{Cron: s.Cron, EveryMS: s.EveryMS} }
