package duty

import (
	"context"
	"time"

	"github.com/claimq/claimq/cluster/lease"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/pause"
)

// RunLeases expires claims whose lease has run out, until ctx ends. It sleeps until the
// earliest timer. If it wakes much too late, the process or the machine stood still and
// workers' extends may still be unread, so it lets them go first.
func (d *Duties) RunLeases(ctx context.Context) {
	timer := time.NewTimer(lease.Idle)
	defer timer.Stop()
	for {
		wait := d.cfg.Timers.Wait(d.cfg.Clock.Now().U)
		timer.Reset(wait)
		begun := d.cfg.Source.Mono()
		select {
		case <-ctx.Done():
			return
		case <-d.cfg.Timers.Wake():
			continue
		case <-timer.C:
		}
		if lease.Late(d.cfg.Source.Mono()-begun, wait) && !pause.For(ctx, lease.LatePause) {
			return
		}
		d.expireDue(ctx)
		d.cfg.Timers.Sweep(d.cfg.Read, d.cfg.Claims())
	}
}

// expireDue proposes the expiry of what is due. What cannot be proposed is retried from the
// state.
func (d *Duties) expireDue(ctx context.Context) {
	for ctx.Err() == nil {
		expired, more := d.cfg.Timers.Due(d.cfg.Read, d.cfg.Clock.Now().U)
		if !more {
			return
		}
		if len(expired) == 0 {
			continue
		}
		begun := d.cfg.Source.Mono()
		p, err := d.cfg.Propose(ctx, command.Expire{Items: expired})
		d.cfg.Timers.Proposed(expired, p.Result.Expired)
		if err == nil {
			if lease.Late(d.cfg.Source.Mono()-begun, 0) && !pause.For(ctx, lease.LatePause) {
				return
			}
			continue
		}
		d.tryAgain(ctx, "expiry not written", err, "claims", len(expired))
		if !pause.For(ctx, RetryInterval) {
			return
		}
	}
}
