package presence

import (
	"sync/atomic"
	"time"

	"github.com/claimq/claimq/api/bound"
	"github.com/claimq/claimq/fsm/command"
)

const (
	// askedWindowMS is how long ago a worker may have asked for a type to count as
	// one that takes its tasks. A claim that waits has asked no longer ago, for none
	// waits longer, and it counts once more when it ends.
	askedWindowMS = bound.WaitMSMax
	// HeardWindow is how long a worker without claims is shown after its last
	// request.
	HeardWindow = 10 * time.Minute
)

// Board is what one node remembers. It is safe for concurrent use.
type Board struct {
	begun   time.Time
	workers *times
	types   *times
	anyType atomic.Int64 // when a claim last asked for any type, 0 = never
	// elsewhere is when this node last passed a request on, 0 = never: since then
	// others may have been asked.
	elsewhere atomic.Int64
}

// New returns an empty board; it is told of nothing before begun.
func New(begun time.Time) *Board {
	return &Board{begun: begun, workers: newTimes(), types: newTimes()}
}

// clock is the board's own clock: milliseconds since it was made, above 0. It
// runs on when the wall clock jumps.
func (b *Board) clock(t time.Time) int64 { return t.Sub(b.begun).Milliseconds() + 1 }

// Note remembers who is at work, before its command is proposed: which workers
// this node hears from, and which types they ask for.
func (b *Board) Note(cmd command.Command, at time.Time) { b.note(cmd, b.clock(at)) }

func (b *Board) note(cmd command.Command, now int64) {
	about := command.AboutOf(cmd)
	if about.WorkerID != "" {
		b.workers.note(about.WorkerID, now)
	}
	if about.Claims {
		b.noteClaim(about.Claimer, about.Types, now)
	}
	for _, op := range about.Ops {
		b.note(op, now)
	}
}

// NoteClaim is Note of a worker's claim of those types, of any if there are none.
func (b *Board) NoteClaim(workerID string, types []string, at time.Time) {
	b.noteClaim(workerID, types, b.clock(at))
}

func (b *Board) noteClaim(workerID string, types []string, now int64) {
	b.noteAsked(types, now)
	b.workers.note(workerID, now)
}

// NoteAsked says that a claim asked for those types until at, for any if there are
// none.
func (b *Board) NoteAsked(types []string, at time.Time) { b.noteAsked(types, b.clock(at)) }

func (b *Board) noteAsked(types []string, now int64) {
	if len(types) == 0 {
		b.anyType.Store(now)
		return
	}
	for _, t := range types {
		b.types.note(t, now)
	}
}

// NoteElsewhere says that a request was passed on to another node.
func (b *Board) NoteElsewhere(at time.Time) { b.elsewhere.Store(b.clock(at)) }

// Asked says when a claim last asked that would take tasks of that type: agoMS before
// now. known is false if none did since this node alone is asked; lately says whether
// it counts for one that takes them. Only the leader is asked, so only its board says
// something.
func (b *Board) Asked(taskType string, now time.Time) (agoMS int64, known, lately bool) {
	last := max(b.types.last(taskType), b.anyType.Load())
	ago := b.clock(now) - last
	return max(ago, 0), last > b.elsewhere.Load(), last != 0 && ago <= askedWindowMS
}

// Workers returns how long before now, in milliseconds, each worker was heard from.
func (b *Board) Workers(now time.Time) (agoMS map[string]int64) {
	clock := b.clock(now)
	agoMS = b.workers.all()
	for id, last := range agoMS {
		agoMS[id] = max(clock-last, 0)
	}
	return agoMS
}
