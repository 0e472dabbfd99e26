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
	// Interval is the longest time between two checks by the leader for something to do.
	Interval = 500 * time.Millisecond
	// RetryInterval is the pause before a failed duty is retried.
	RetryInterval = 100 * time.Millisecond
	// inRow bounds the ticks, and the evictions, that one check proposes; each does a
	// bounded amount of work.
	inRow = 64
)

// Config connects the duties to their leadership.
type Config struct {
	Source lease.ClockSource
	Clock  *lease.Clock  // of the leadership
	Timers *lease.Timers // of live claims
	// Read gives access to the state under its read lock; Claims returns its number of
	// claims.
	Read   lease.Reader
	Claims func() int
	// Propose proposes a command of the leader's own.
	Propose func(ctx context.Context, cmd command.Command) (nodes.Proposed, error)
	// Knows returns an error if some node of the cluster does not know a command.
	Knows   func(cmd command.Command) error
	Space   *space.Space
	Waiters *batch.Waiters
	Zones   *zones.Source // for slots; nil: those in the binary
	// TrailBytes and TrailAge bound the trail; 0 leaves it unchanged.
	TrailBytes int64
	TrailAge   time.Duration
	Logger     hclog.Logger
}

// Duties are the duties of one leadership. Each Run method ends with its ctx, which ends
// with the leadership.
type Duties struct {
	cfg      Config
	due      *agenda       // of ticks
	openings *agenda       // of types closed by their rate limit
	slots    *agenda       // of schedules
	restored atomic.Uint64 // how many states have replaced another
	placedBy placing       // used by RunSchedules: what the slots were placed by
	ticked   time.Duration // used by RunTicks: monotonic time of its last tick
}

// New returns the duties of a leadership, without starting them.
func New(cfg Config) *Duties {
	return &Duties{cfg: cfg, due: newAgenda(), openings: newAgenda(), slots: newAgenda()}
}

// Applied is called for every entry, under the state's lock.
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

// now returns the clocks, but not less than the state's.
func (d *Duties) now(m *fsm.Machine) fsm.Stamp { return d.cfg.Clock.AtLeast(m.Stamp()) }

// propose proposes a command and ignores its result.
func (d *Duties) propose(ctx context.Context, cmd command.Command) error {
	_, err := d.cfg.Propose(ctx, cmd)
	return err
}

// tryAgain logs an error of a duty that its next check will retry, unless the leadership has
// ended. about adds details.
func (d *Duties) tryAgain(ctx context.Context, what string, err error, about ...any) {
	if ctx.Err() == nil {
		d.cfg.Logger.Warn(what+", trying again", append(about, "error", err)...)
	}
}
