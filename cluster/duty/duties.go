package duty

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/claimq/claimq/cluster/batch"
	"github.com/claimq/claimq/cluster/lease"
	"github.com/claimq/claimq/cluster/space"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/zones"
	"github.com/claimq/claimq/nodes"
)

const (
	// Interval is how often the leader looks what there is to do when nothing wakes it.
	Interval = 500 * time.Millisecond
	// RetryInterval is the pause before a duty that failed is tried again.
	RetryInterval = 100 * time.Millisecond
	// inRow bounds the ticks, and the evictions, that one look proposes: each
	// does a bounded amount of work.
	inRow = 64
)

// Config is what the duties of one leadership need of it.
type Config struct {
	Source lease.ClockSource
	Clock  *lease.Clock  // the leadership's
	Timers *lease.Timers // of the claims that live
	// Read is the state under its read lock, Claims how many claims it has.
	Read   lease.Reader
	Claims func() int
	// Propose proposes a command of the leader's own.
	Propose func(ctx context.Context, cmd command.Command) (nodes.Proposed, error)
	// Knows says why not every node of the cluster knows a command, nil if they do.
	Knows   func(cmd command.Command) error
	Space   *space.Space
	Waiters *batch.Waiters
	Zones   *zones.Source // by which slots are computed; nil: those in the binary
	// TrailBytes and TrailAge bound the trail; 0 leaves it as it is.
	TrailBytes int64
	TrailAge   time.Duration
	Logger     hclog.Logger
}

// Duties are those of one leadership. Each Run ends with its ctx, which ends with the
// leadership.
type Duties struct {
	cfg      Config
	due      *agenda       // of the ticks
	openings *agenda       // of the types that their rate limit closed
	slots    *agenda       // of the schedules
	restored atomic.Uint64 // how many states took the place of another
	placedBy placing       // RunSchedules' own: by what the slots are where they are
	ticked   time.Duration // RunTicks' own: monotonic time of its last tick
}

// New returns the duties of a leadership, none of which has begun.
func New(cfg Config) *Duties {
	return &Duties{cfg: cfg, due: newAgenda(), openings: newAgenda(), slots: newAgenda()}
}

// Applied is told of every entry, under the state's lock.
func (d *Duties) Applied(m *fsm.Machine, a *fsm.Applied) {
	if a.Restored {
		d.restored.Add(1)
	}
	if len(a.Leases) > 0 {
		d.cfg.Timers.Add(a.Leases)
	}
	if len(a.Ready) > 0 {
		d.cfg.Waiters.NoteReady(a.Ready)
	}
	d.due.note(m.NextDue())
	if d.over(m) {
		d.due.hurry()
	}
	d.openings.note(m.NextOpening())
	d.slots.note(m.NextSlot())
}

// now returns the clocks, at least what the state has.
func (d *Duties) now(m *fsm.Machine) fsm.Stamp { return d.cfg.Clock.AtLeast(m.Stamp()) }

// propose proposes a command whose result does not matter.
func (d *Duties) propose(ctx context.Context, cmd command.Command) error {
	_, err := d.cfg.Propose(ctx, cmd)
	return err
}

// tryAgain logs what a duty could not do and will do at its next look, unless the leadership
// has ended, with what else there is to say of it.
func (d *Duties) tryAgain(ctx context.Context, what string, err error, about ...any) {
	if ctx.Err() == nil {
		d.cfg.Logger.Warn(what+", trying again", append(about, "error", err)...)
	}
}
