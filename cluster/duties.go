package cluster

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/claimq/claimq/cluster/lease"
	"github.com/claimq/claimq/cluster/replica"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

const (
	// dutyInterval is how often the leader looks what there is to do when
	// nothing wakes it.
	dutyInterval = 500 * time.Millisecond
	// dutiesInRow bounds the ticks, and the evictions, that one look proposes: each
	// does a bounded amount of work.
	dutiesInRow = 64
	// tickInterval is the least time between two ticks that have little to do: a
	// steady trickle of due tasks must not become an entry for each.
	tickInterval = 10 * time.Millisecond
)

// agenda is what a goroutine of the leader sleeps until. Entries may bring
// something that comes earlier.
type agenda struct {
	planned atomic.Int64  // by T; MaxInt64 = nothing
	earlier chan struct{} // capacity 1: something comes before planned
}

func newAgenda() *agenda {
	a := &agenda{earlier: make(chan struct{}, 1)}
	a.planned.Store(math.MaxInt64)
	return a
}

// plan says until when the goroutine sleeps. It is called under the state's
// read lock.
func (a *agenda) plan(t int64, ok bool) {
	if !ok {
		t = math.MaxInt64
	}
	a.planned.Store(t)
}

// note is told, under the state's lock, what comes first after an entry.
func (a *agenda) note(t int64, ok bool) {
	if ok && t < a.planned.Load() {
		a.hurry()
	}
}

// hurry wakes the goroutine.
func (a *agenda) hurry() {
	select {
	case a.earlier <- struct{}{}:
	default:
	}
}

// untilT returns how long to sleep until t by a calendar that says now.
func untilT(t, now int64) time.Duration {
	return time.Duration(min(max(t-now, 0), dutyInterval.Milliseconds())) * time.Millisecond
}

// runDuties does what a leader does beside serving, until the scope ends. A
// duty that fails is done again at the next look.
func (l *leadership) runDuties() {
	timer := time.NewTimer(dutyInterval)
	defer timer.Stop()
	checkpoint := l.node.clock.Mono() + checkpointInterval
	l.start(l.runMembers)
	if l.node.raft != nil {
		l.start(l.runDisks)
	}
	for {
		sleep := l.tickWhileDue()
		l.evictWhileOver()
		l.forgetWhileOver()
		l.boundTrail()
		if now := l.node.clock.Mono(); now >= checkpoint {
			checkpoint = now + checkpointInterval
			l.start(l.checkpoint)
		}
		timer.Reset(sleep)
		select {
		case <-l.ctx.Done():
			return
		case <-l.due.earlier:
		case <-timer.C:
		}
	}
}

// tickWhileDue logs ticks while there is something for them to do, or the
// clocks in the state have become old. It returns how long nothing is due.
func (l *leadership) tickWhileDue() time.Duration {
	for range dutiesInRow {
		if sleep := l.untilTick(); sleep > 0 {
			return sleep
		}
		l.ticked = l.node.clock.Mono()
		if err := l.propose(command.Tick{}); err != nil {
			l.tryAgain("tick not written", err)
			return dutyRetryInterval
		}
	}
	return tickInterval
}

// untilTick returns how long no tick is due: 0 if one is, and dutyInterval at
// most.
func (l *leadership) untilTick() (sleep time.Duration) {
	l.read(func(m *fsm.Machine) {
		now, state := l.clock.Now(), m.Stamp()
		t, some := m.NextDue()
		l.due.plan(t, some)
		switch {
		case lease.TickDue(now, state, m.ClaimCount()+m.FinalizationCount()), some && t <= state.T:
			// The second: the last tick did not get to it.
		case some:
			sleep = max(untilT(t, now.T), tickInterval-(l.node.clock.Mono()-l.ticked))
		default:
			sleep = dutyInterval
		}
	})
	return sleep
}

// evictWhileOver evicts ended tasks while they take more than their share of
// the memory, or of what the rest of the state leaves of it.
func (l *leadership) evictWhileOver() {
	n := l.node
	for range dutiesInRow {
		held := l.held()
		if !n.evicts(held) {
			return
		}
		limit := n.cfg.MemoryLimit
		evict := command.Evict{Bytes: endedMax(limit, held.All-held.Ended) - limit/evictPart}
		p, err := n.batcher.Propose(l.ctx, evict)
		if err != nil {
			l.tryAgain("eviction not written", err)
			return
		}
		if p.Result.Evicted == 0 {
			return
		}
	}
}

// forgetWhileOver forgets what is remembered of removed tasks and of claim requests
// while it takes more than its share of the memory, or of what lasts leaves of it.
func (l *leadership) forgetWhileOver() {
	n := l.node
	for range dutiesInRow {
		held := l.held()
		if !n.forgets(held) {
			return
		}
		limit := n.cfg.MemoryLimit
		forget := command.Forget{Bytes: rememberedMax(limit, held.Lasting()) - limit/evictPart}
		if _, err := n.batcher.Propose(l.ctx, forget); err != nil {
			l.tryAgain("forgetting not written", err)
			return
		}
		if l.held().Remembered == held.Remembered {
			return // claims that live keep the rest
		}
	}
}

// held returns what the state takes.
func (l *leadership) held() (held replica.Held) {
	l.read(func(m *fsm.Machine) { held = replica.HeldBy(m) })
	return held
}

// runOpenings wakes those who wait for a type when its rate limit lets tasks be
// claimed again, until the scope ends: no entry tells of that. It also wakes for
// an entry whose outcome took so long that nobody waited for it any more.
func (l *leadership) runOpenings() {
	timer := time.NewTimer(dutyInterval)
	defer timer.Stop()
	for {
		sleep := dutyInterval
		l.read(func(m *fsm.Machine) {
			now := l.now(m).T
			due, next, some := m.Openings(now)
			l.openings.plan(next, some)
			if some {
				sleep = untilT(next, now)
			}
			l.waiters.NoteOpened(due)
		})
		l.waiters.Wake()
		timer.Reset(sleep)
		select {
		case <-l.ctx.Done():
			return
		case <-l.openings.earlier:
		case <-timer.C:
		}
	}
}

// boundTrail gives the trail the bounds that this node is configured with, where
// the cluster has others. One that is not configured stays as it is.
func (l *leadership) boundTrail() {
	cfg := &l.node.cfg
	if cfg.TrailBytes == 0 && cfg.TrailAge == 0 {
		return
	}
	var has command.SetTrail
	l.read(func(m *fsm.Machine) { has = m.TrailBounds() })
	want := has
	if cfg.TrailBytes != 0 {
		want.Bytes = cfg.TrailBytes
	}
	if cfg.TrailAge != 0 {
		want.AgeMS = cfg.TrailAge.Milliseconds()
	}
	if want == has || l.node.checkLevel(want) != nil {
		return
	}
	if err := l.propose(want); err != nil {
		l.tryAgain("bounds of the trail not written", err)
	}
}
