package duty

import (
	"context"
	"time"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/internal/pause"
)

// RunOpenings wakes the claims that wait for a type when its rate limit allows claims
// again, until ctx ends, because no entry reports that. It also wakes claims after an entry
// whose outcome took so long that the batcher gave up on it.
func (d *Duties) RunOpenings(ctx context.Context) {
	timer := time.NewTimer(Interval)
	defer timer.Stop()
	for {
		sleep := Interval
		d.cfg.Read(func(m *fsm.Machine) {
			now := d.now(m).T
			due, next, some := m.Openings(now)
			d.openings.plan(next, some)
			if some {
				sleep = untilT(next, now)
			}
			d.cfg.Waiters.NoteOpened(due)
		})
		d.cfg.Waiters.Wake()
		timer.Reset(min(sleep, pause.Beat(Interval)))
		select {
		case <-ctx.Done():
			return
		case <-d.openings.earlier:
		case <-timer.C:
		}
	}
}
