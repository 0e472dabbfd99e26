package presence

import (
	"sync/atomic"
	"time"

	"github.com/claimq/claimq/api/bound"
	"github.com/claimq/claimq/fsm/command"
)

const (
	// askedWindowMS is the time within which a worker must have asked for a type to count as one that takes its tasks.
	// Claims do not wait longer than that, and count once more when their wait ends.
	askedWindowMS = bound.WaitMSMax
	// HeardWindow is the time for which a worker without claims is shown after its last request.
	HeardWindow = 10 * time.Minute
)

// Board is one node's memory of workers. It is safe for concurrent use.
type Board struct {
	begun   time.Time
	workers *times
	types   *times
	anyType atomic.Int64 // when a claim last asked for any type, 0 = never
	// elsewhere is the time at which this node last forwarded a request, 0 = never; before that, other nodes may have
	// been asked.
	elsewhere atomic.Int64
}

// New returns an empty board. begun must not be after the first note.
func New(begun time.Time) *Board {
	return &Board{begun: begun, workers: newTimes(), types: newTimes()}
}

// clock returns the board's own clock: milliseconds since begun, above 0. It is monotonic.
func (b *Board) clock(t time.Time) int64 { return t.Sub(b.begun).Milliseconds() + 1 }

// Note records, before a command is proposed, which worker sent it and which types it asks for.
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

// NoteClaim is Note for a worker's claim of those types, or of any type if there are none.
func (b *Board) NoteClaim(workerID string, types []string, at time.Time) {
	b.noteClaim(workerID, types, b.clock(at))
}

func (b *Board) noteClaim(workerID string, types []string, now int64) {
	b.noteAsked(types, now)
	b.workers.note(workerID, now)
}

// NoteAsked records that a claim asked for those types until at, or for any type if there are none.
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

// NoteElsewhere records that a request was forwarded to another node.
func (b *Board) NoteElsewhere(at time.Time) { b.elsewhere.Store(b.clock(at)) }

// Asked returns how long ago, in milliseconds, a claim last asked for tasks of that type. known is false if no claim
// did since this node became the node that workers ask; lately says whether that is recent enough to count. Only the
// leader is asked, so only its board is meaningful.
func (b *Board) Asked(taskType string, now time.Time) (agoMS int64, known, lately bool) {
	last := max(b.types.last(taskType), b.anyType.Load())
	ago := b.clock(now) - last
	return max(ago, 0), last > b.elsewhere.Load(), last != 0 && ago <= askedWindowMS
}

// Workers returns how long ago, in milliseconds, each worker was heard from.
func (b *Board) Workers(now time.Time) (agoMS map[string]int64) {
	clock := b.clock(now)
	agoMS = b.workers.all()
	for id, last := range agoMS {
		agoMS[id] = max(clock-last, 0)
	}
	return agoMS
}
