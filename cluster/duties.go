package cluster

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/claimq/claimq/cluster/lease"
	"github.com/claimq/claimq/cluster/replica"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/internal/zones"
)

const (
	// dutyInterval is the longest time between two checks by the leader for something to do.
	dutyInterval = 500 * time.Millisecond
	// inRow bounds the ticks, and the evictions, that one check proposes; each does a
	// bounded amount of work.
	inRow = 64
	// tickInterval is the least time between two ticks with little to do, so that a steady
	// trickle of due tasks does not become an entry for each.
	tickInterval = 10 * time.Millisecond
)

// duties do what becomes due in a leader's state: they end leases that have run out (leases.go), log
// ticks and evictions, wake claims when a rate limit opens a type again (here), and run the slots of
// schedules (schedules.go). Each is a loop that sleeps until the next is due, and then proposes. All
// end with the leadership. A proposal that comes too late or twice does no harm, because Apply
// decides about every task again.
type duties struct {
	*leadership
	ticks    *agenda       // of runTicks
	openings *agenda       // of runOpenings
	slots    *agenda       // of runSchedules
	restored atomic.Uint64 // how often a restored state has replaced the old one
	placedBy placing       // used by runSchedules: what the slots were placed by
	ticked   time.Duration // used by runTicks: monotonic time of its last tick
}

// placing identifies the time zones and the state for which the slots were moved. The zero value is
// for none.
type placing struct {
	zones    *zones.Data
	restored uint64
	done     bool
}

// newDuties returns the duties of a leadership, without starting them.
func newDuties(l *leadership) *duties {
	return &duties{leadership: l, ticks: newAgenda(), openings: newAgenda(), slots: newAgenda()}
}

// applied is called for every entry, under the state's lock.
func (d *duties) applied(m *fsm.Machine, a *fsm.Applied) {
	if a.Restored {
		d.restored.Add(1)
	}
	if len(a.Leases) > 0 {
		d.timers.Add(a.Leases)
	}
	if len(a.Ready) > 0 {
		d.waiters.NoteReady(a.Ready)
	}
	d.ticks.note(m.NextDue())
	if d.over(m) {
		d.ticks.hurry()
	}
	d.openings.note(m.NextOpening())
	d.slots.note(m.NextSlot())
}

// tryAgain logs an error of a duty that its next check will retry, unless the leadership has
// ended. about adds details.
func (d *duties) tryAgain(what string, err error, about ...any) {
	if d.ctx.Err() == nil {
		d.node.logger.Warn(what+", trying again", append(about, "error", err)...)
	}
}

// runTicks logs ticks, evictions and the trail's bounds when they are due, until the leadership
// ends. Failed proposals are retried at the next check.
func (d *duties) runTicks() {
	timer := time.NewTimer(dutyInterval)
	defer timer.Stop()
	for {
		sleep := d.tickWhileDue()
		d.evictWhileOver()
		d.forgetWhileOver()
		d.boundTrail()
		timer.Reset(min(sleep, pause.Beat(dutyInterval)))
		select {
		case <-d.ctx.Done():
			return
		case <-d.ticks.earlier:
		case <-timer.C:
		}
	}
}

// tickWhileDue logs ticks while there is something for them to do, or the state's clocks are
// old. It returns the time until the next is due.
func (d *duties) tickWhileDue() time.Duration {
	for range inRow {
		if sleep := d.untilTick(); sleep > 0 {
			return sleep
		}
		d.ticked = d.node.clock.Mono()
		if err := d.propose(command.Tick{}); err != nil {
			d.tryAgain("tick not written", err)
			return retryInterval
		}
	}
	return tickInterval
}

// untilTick returns the time until a tick is due: 0 if one is, at most dutyInterval.
func (d *duties) untilTick() (sleep time.Duration) {
	d.read(func(m *fsm.Machine) {
		now, state := d.clock.Now(), m.Stamp()
		t, some := m.NextDue()
		d.ticks.plan(t, some)
		switch {
		case lease.TickDue(now, state, m.ClaimCount()+m.FinalizationCount()), some && t <= state.T:
			// The second case: the last tick did not finish.
		case some:
			sleep = max(untilT(t, now.T), tickInterval-(d.node.clock.Mono()-d.ticked))
		default:
			sleep = dutyInterval
		}
	})
	return sleep
}

// over reports whether something should be evicted or forgotten.
func (d *duties) over(m *fsm.Machine) bool {
	held := replica.HeldBy(m)
	if _, evicts := d.node.space.EvictTo(held); evicts {
		return true
	}
	_, forgets := d.node.space.ForgetTo(held)
	return forgets
}

// evictWhileOver evicts ended tasks while they take more than their share of the memory, or of
// what the rest of the state leaves.
func (d *duties) evictWhileOver() {
	for range inRow {
		bytes, due := d.node.space.EvictTo(d.held())
		if !due {
			return
		}
		p, err := d.node.batcher.ProposeOwn(d.ctx, command.Evict{Bytes: bytes})
		if err != nil {
			d.tryAgain("eviction not written", err)
			return
		}
		if p.Result.Evicted == 0 {
			return
		}
	}
}

// forgetWhileOver forgets removed tasks and claim requests while they take more than their
// share of the memory, or of what the lasting state leaves.
func (d *duties) forgetWhileOver() {
	for range inRow {
		held := d.held()
		bytes, due := d.node.space.ForgetTo(held)
		if !due {
			return
		}
		if err := d.propose(command.Forget{Bytes: bytes}); err != nil {
			d.tryAgain("forgetting not written", err)
			return
		}
		if d.held().Remembered == held.Remembered {
			return // requests with live claims keep the rest
		}
	}
}

// held returns the memory of the state by its parts.
func (d *duties) held() (held replica.Held) {
	d.read(func(m *fsm.Machine) { held = replica.HeldBy(m) })
	return held
}

// boundTrail sets the configured bounds of the trail if the cluster has others. Bounds that are
// not configured stay.
func (d *duties) boundTrail() {
	cfg := &d.node.cfg
	if cfg.TrailBytes == 0 && cfg.TrailAge == 0 {
		return
	}
	var has command.SetTrail
	d.read(func(m *fsm.Machine) { has = m.TrailBounds() })
	want := has
	if cfg.TrailBytes != 0 {
		want.Bytes = cfg.TrailBytes
	}
	if cfg.TrailAge != 0 {
		want.AgeMS = cfg.TrailAge.Milliseconds()
	}
	if want == has {
		return
	}
	if err := d.propose(want); err != nil {
		d.tryAgain("bounds of the trail not written", err)
	}
}

// runOpenings wakes the claims that wait for a type when its rate limit allows claims again, because
// no entry reports that, until the leadership ends. It also wakes claims after an entry whose
// outcome took so long that the batcher gave up on it.
func (d *duties) runOpenings() {
	timer := time.NewTimer(dutyInterval)
	defer timer.Stop()
	for {
		sleep := dutyInterval
		d.read(func(m *fsm.Machine) {
			now := d.now(m).T
			due, next, some := m.Openings(now)
			d.openings.plan(next, some)
			if some {
				sleep = untilT(next, now)
			}
			d.waiters.NoteOpened(due)
		})
		d.waiters.Wake()
		timer.Reset(min(sleep, pause.Beat(dutyInterval)))
		select {
		case <-d.ctx.Done():
			return
		case <-d.openings.earlier:
		case <-timer.C:
		}
	}
}

// agenda holds the time until which a goroutine of the leader sleeps. Entries may add
// something earlier.
type agenda struct {
	planned atomic.Int64  // by T; MaxInt64 = nothing
	earlier chan struct{} // capacity 1: something is due before planned
}

func newAgenda() *agenda {
	a := &agenda{earlier: make(chan struct{}, 1)}
	a.planned.Store(math.MaxInt64)
	return a
}

// plan sets the time until which the goroutine sleeps. It is called under the state's read
// lock.
func (a *agenda) plan(t int64, ok bool) {
	if !ok {
		t = math.MaxInt64
	}
	a.planned.Store(t)
}

// note is called, under the state's lock, with what is due first after an entry.
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

// untilT returns how long to sleep until t by a calendar that shows now.
func untilT(t, now int64) time.Duration {
	return time.Duration(min(max(t-now, 0), dutyInterval.Milliseconds())) * time.Millisecond
}
