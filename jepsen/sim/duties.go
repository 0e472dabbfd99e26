package sim

import (
	"time"

	"github.com/claimq/claimq/cluster/lease"
	"github.com/claimq/claimq/fsm/command"
)

// tickInterval is the least time between two ticks for what is due.
const tickInterval = 10 * millisecond

// duties does what a leader does beside serving: it logs ticks when one is due,
// and lets ended tasks be evicted.
func (l *leader) duties() {
	if l.over {
		return
	}
	l.dutiesAt++
	mine := l.dutiesAt
	next := dutyInterval
	if !l.ticking {
		if next = l.untilTick(); next == 0 {
			next = tickInterval
			l.tick()
		}
	}
	l.evictWhileOver()
	l.wake(time.Duration(next), func() {
		if mine == l.dutiesAt {
			l.duties()
		}
	})
}

// untilTick returns how long no tick is due, in nanoseconds.
func (l *leader) untilTick() int64 {
	m, now := l.replica.machine, l.clock.Now()
	l.planned = 0
	if lease.TickDue(now, m.Stamp(), m.ClaimCount()+m.FinalizationCount()) {
		return 0
	}
	next, some := m.NextDue()
	if !some {
		return dutyInterval
	}
	l.planned = next
	return min(max(next-now.T, 0)*millisecond, dutyInterval)
}

func (l *leader) tick() {
	l.ticking = true
	l.propose(&proposal{c: command.Tick{}, sentAt: l.w.now, done: func(outcome) {
		l.ticking = false
	}})
}

// evictWhileOver evicts ended tasks if they take more memory than they may.
func (l *leader) evictWhileOver() {
	most := l.w.profile.endedBytes
	if most == 0 || l.evicting || l.replica.machine.EndedBytes() <= most || l.replica.machine.Level() < levelLife {
		return
	}
	l.evicting = true
	l.propose(&proposal{c: command.Evict{Bytes: most * 3 / 4}, sentAt: l.w.now, done: func(outcome) { l.evicting = false }})
}

// noteDue wakes the duties if an entry brought something that comes earlier
// than what they sleep until.
func (l *leader) noteDue() {
	if !l.serving || l.ticking {
		return
	}
	if next, some := l.replica.machine.NextDue(); some && (l.planned == 0 || next < l.planned) {
		l.planned = next
		l.duties()
	}
}
