package cluster

import (
	"time"

	"github.com/claimq/claimq/cluster/lease"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/pause"
)

// read is the state under its read lock, as the timers look at it.
func (l *leadership) read(fn func(*fsm.Machine)) { l.node.fsm.Read(fn) }

// runTimers expires claims whose lease has run out, until the scope ends. It
// sleeps until the earliest timer; if it wakes much too late, the process or
// the machine stood still, and workers' extends are still waiting to be read:
// then it lets them go first.
func (l *leadership) runTimers() {
	timer := time.NewTimer(lease.Idle)
	defer timer.Stop()
	for {
		wait := l.timers.Wait(l.clock.Now().U)
		timer.Reset(wait)
		begun := l.node.clock.Mono()
		select {
		case <-l.ctx.Done():
			return
		case <-l.timers.Wake():
			continue
		case <-timer.C:
		}
		if lease.Late(l.node.clock.Mono()-begun, wait) && !pause.For(l.ctx, lease.LatePause) {
			return
		}
		l.expireDue()
		l.timers.Sweep(l.read, l.node.fsm.Claims())
	}
}

// expireDue proposes the expiry of what is due. What cannot be proposed is
// tried again from the state.
func (l *leadership) expireDue() {
	for l.ctx.Err() == nil {
		expired, more := l.timers.Due(l.read, l.clock.Now().U)
		if !more {
			return
		}
		if len(expired) == 0 {
			continue
		}
		begun := l.node.clock.Mono()
		p, err := l.node.batcher.Propose(l.ctx, command.Expire{Items: expired})
		l.timers.Proposed(expired, p.Result.Expired)
		if err == nil {
			if lease.Late(l.node.clock.Mono()-begun, 0) && !pause.For(l.ctx, lease.LatePause) {
				return
			}
			continue
		}
		l.tryAgain("expiry not written", err, "claims", len(expired))
		if !pause.For(l.ctx, dutyRetryInterval) {
			return
		}
	}
}
