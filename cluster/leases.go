package cluster

import (
	"time"

	"github.com/claimq/claimq/cluster/lease"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/pause"
)

// Where a lease ends:
//
//  1. A claim's entry is applied. The leader adds a timer for it (duties.applied).
//  2. The timer is due. Timers.Due compares it with the lease in the state, because an extend
//     does not touch the timers, and returns only leases that have run out.
//  3. endLeases proposes command.Expire through the batcher, as the leader's own command.
//  4. Apply on every node (package fsm, due.go) ends each claim unless an extend came first,
//     so an Expire that comes too late or twice does no harm.
//
// Only the leader has timers. A new leader makes them from the state (Timers.Start).

// watchLeases ends claims whose lease has run out, until the leadership ends. It sleeps until
// the earliest timer. If it wakes much too late, the process or the machine stood still and
// workers' extends may still be unread, so it lets them go first.
func (d *duties) watchLeases() {
	timer := time.NewTimer(lease.Idle)
	defer timer.Stop()
	for {
		wait := d.timers.Wait(d.clock.Now().U)
		timer.Reset(wait)
		begun := d.node.clock.Mono()
		select {
		case <-d.ctx.Done():
			return
		case <-d.timers.Wake():
			continue
		case <-timer.C:
		}
		if lease.Late(d.node.clock.Mono()-begun, wait) && !pause.For(d.ctx, lease.LatePause) {
			return
		}
		d.endLeases()
		d.timers.Sweep(d.read, d.node.fsm.Claims())
	}
}

// endLeases proposes the end of the claims whose lease has run out. Ends that cannot be proposed
// are retried from the state.
func (d *duties) endLeases() {
	for d.ctx.Err() == nil {
		expired, more := d.timers.Due(d.read, d.clock.Now().U)
		if !more {
			return
		}
		if len(expired) == 0 {
			continue
		}
		begun := d.node.clock.Mono()
		p, err := d.node.batcher.ProposeOwn(d.ctx, command.Expire{Items: expired})
		d.timers.NoteExpired(expired, p.Result.Expired)
		if err == nil {
			if lease.Late(d.node.clock.Mono()-begun, 0) && !pause.For(d.ctx, lease.LatePause) {
				return
			}
			continue
		}
		d.tryAgain("expiry not written", err, "claims", len(expired))
		if !pause.For(d.ctx, retryInterval) {
			return
		}
	}
}
