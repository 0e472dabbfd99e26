package duty

import (
	"context"
	"time"

	"github.com/claimq/claimq/cluster/lease"
	"github.com/claimq/claimq/cluster/replica"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/pause"
)

// tickInterval is the least time between two ticks with little to do, so that a steady trickle
// of due tasks does not become an entry for each.
const tickInterval = 10 * time.Millisecond

// RunTicks logs ticks, evictions and the trail's bounds when they are due, until ctx ends. What
// fails is retried at the next check.
func (d *Duties) RunTicks(ctx context.Context) {
	timer := time.NewTimer(Interval)
	defer timer.Stop()
	for {
		sleep := d.tickWhileDue(ctx)
		d.evictWhileOver(ctx)
		d.forgetWhileOver(ctx)
		d.boundTrail(ctx)
		timer.Reset(min(sleep, pause.Beat(Interval)))
		select {
		case <-ctx.Done():
			return
		case <-d.due.earlier:
		case <-timer.C:
		}
	}
}

// tickWhileDue logs ticks while there is something for them to do, or the state's clocks are
// old. It returns how long nothing is due.
func (d *Duties) tickWhileDue(ctx context.Context) time.Duration {
	for range inRow {
		if sleep := d.untilTick(); sleep > 0 {
			return sleep
		}
		d.ticked = d.cfg.Source.Mono()
		if err := d.propose(ctx, command.Tick{}); err != nil {
			d.tryAgain(ctx, "tick not written", err)
			return RetryInterval
		}
	}
	return tickInterval
}

// untilTick returns how long no tick is due: 0 if one is, at most Interval.
func (d *Duties) untilTick() (sleep time.Duration) {
	d.cfg.Read(func(m *fsm.Machine) {
		now, state := d.cfg.Clock.Now(), m.Stamp()
		t, some := m.NextDue()
		d.due.plan(t, some)
		switch {
		case lease.TickDue(now, state, m.ClaimCount()+m.FinalizationCount()), some && t <= state.T:
			// The second case: the last tick did not finish.
		case some:
			sleep = max(untilT(t, now.T), tickInterval-(d.cfg.Source.Mono()-d.ticked))
		default:
			sleep = Interval
		}
	})
	return sleep
}

// over reports whether something should be evicted or forgotten.
func (d *Duties) over(m *fsm.Machine) bool {
	held := replica.HeldBy(m)
	if _, evicts := d.cfg.Space.EvictTo(held); evicts {
		return true
	}
	_, forgets := d.cfg.Space.ForgetTo(held)
	return forgets
}

// evictWhileOver evicts ended tasks while they take more than their share of the memory, or of
// what the rest of the state leaves.
func (d *Duties) evictWhileOver(ctx context.Context) {
	for range inRow {
		bytes, due := d.cfg.Space.EvictTo(d.held())
		if !due {
			return
		}
		p, err := d.cfg.Propose(ctx, command.Evict{Bytes: bytes})
		if err != nil {
			d.tryAgain(ctx, "eviction not written", err)
			return
		}
		if p.Result.Evicted == 0 {
			return
		}
	}
}

// forgetWhileOver forgets removed tasks and claim requests while they take more than their
// share of the memory, or of what the lasting state leaves.
func (d *Duties) forgetWhileOver(ctx context.Context) {
	for range inRow {
		held := d.held()
		bytes, due := d.cfg.Space.ForgetTo(held)
		if !due {
			return
		}
		if err := d.propose(ctx, command.Forget{Bytes: bytes}); err != nil {
			d.tryAgain(ctx, "forgetting not written", err)
			return
		}
		if d.held().Remembered == held.Remembered {
			return // requests with live claims keep the rest
		}
	}
}

// held returns the memory of the state by its parts.
func (d *Duties) held() (held replica.Held) {
	d.cfg.Read(func(m *fsm.Machine) { held = replica.HeldBy(m) })
	return held
}

// boundTrail sets the configured bounds of the trail if the cluster has others. Bounds that are
// not configured stay.
func (d *Duties) boundTrail(ctx context.Context) {
	cfg := &d.cfg
	if cfg.TrailBytes == 0 && cfg.TrailAge == 0 {
		return
	}
	var has command.SetTrail
	d.cfg.Read(func(m *fsm.Machine) { has = m.TrailBounds() })
	want := has
	if cfg.TrailBytes != 0 {
		want.Bytes = cfg.TrailBytes
	}
	if cfg.TrailAge != 0 {
		want.AgeMS = cfg.TrailAge.Milliseconds()
	}
	if want == has || d.cfg.Knows(want) != nil {
		return
	}
	if err := d.propose(ctx, want); err != nil {
		d.tryAgain(ctx, "bounds of the trail not written", err)
	}
}
