package sim

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/claimq/claimq/cluster/lease"
	"github.com/claimq/claimq/fsm"
)

// entry is one entry of the model log: packed by a leader, in flight, and committed then
// or lost.
type entry struct {
	leader    *leader
	number    uint64 // counts those that were packed
	proposals []*proposal
	stamp     fsm.Stamp
	packedAt  int64 // when the leader stamped it
	led       int64 // how long there had been leaders by then
	data      []byte
	// tooNew, if not nil, is what a replica of an older version reads in place of
	// data: something that it does not know.
	tooNew []byte
	told   bool // the proposers have been told how it ended, or that this is unknown

	index   uint64      // once it is committed; grows, with gaps: not every entry of Raft's reaches the state
	applied fsm.Applied // what the state made of it that every entry went through
	hash    [16]byte    // of the state after it; zero if nobody compares it
	// snapshot is what the first snapshot taken here looked like.
	snapshot []byte
}

// tell answers the proposers, unless they have been.
func (e *entry) tell(of func(i int) outcome) {
	if e.told {
		return
	}
	e.told = true
	for i, p := range e.proposals {
		p.done(of(i))
	}
}

// replica is one node's copy of the state, and the node's clocks.
type replica struct {
	w       *world
	name    string
	machine *fsm.Machine // nil: it stopped for good
	applied int          // entries of the log

	old         bool  // it runs an older version
	lags        bool  // it does not apply
	pausedUntil int64 // the process stands still until then

	rate  int64      // how much faster its clocks run, in millionths
	wall  int64      // how much its wall clock is ahead
	hint  lease.Hint // the latest that it was told, in memory alone
	since int64      // when the process began
	files []file
	taken *fsm.Snapshot // captured, not yet written
	at    int           // entries applied when it was
}

// file is a snapshot on disk.
type file struct {
	at   int // entries applied
	data []byte
}

// Wall is the replica's wall clock.
func (r *replica) Wall() int64 { return epoch + r.local(r.w.now) + r.wall }

// Mono is the replica's monotonic clock.
func (r *replica) Mono() time.Duration { return time.Duration(r.local(r.w.now)) }

// local converts a span of real time into one of the replica's clocks.
func (r *replica) local(d int64) int64 { return d + d/1000*r.rate/1000 }

// real is the inverse of local, rounded up.
func (r *replica) real(d int64) int64 { return d - d/1000*r.rate/1000 + 1 }

// paused returns how long the replica still stands still.
func (r *replica) paused() int64 { return max(r.pausedUntil-r.w.now, 0) }

// catchUp applies what is committed, up to so many entries.
func (r *replica) catchUp(to int) {
	for r.applied < to && r.machine != nil && r.w.failure == "" {
		r.apply(r.w.log[r.applied])
	}
}

// applyFirst applies an entry that was just committed to the state that each went
// through, without a restore: its results are what every replica's must be.
func (w *world) applyFirst(e *entry) {
	var err error
	if e.applied, err = w.state.Apply(e.index, e.data); err != nil {
		w.fail("apply entry %d: %v", e.index, err)
		return
	}
	if len(e.applied.Results) != len(e.proposals) || e.applied.Index != e.index {
		w.fail("entry %d: %d results at index %d for %d commands", e.index, len(e.applied.Results), e.applied.Index, len(e.proposals))
		return
	}
	if e.index%w.profile.hashEvery == 0 {
		e.hash = hashOf(w.state)
	}
	w.noted(&e.applied)
	w.watch.entry(w, e)
	if w.onEntry != nil {
		w.onEntry(e.index, e.data)
	}
}

// apply applies the next entry and compares what it did with what it did first.
func (r *replica) apply(e *entry) *fsm.Applied {
	w := r.w
	if r.old && e.tooNew != nil {
		r.meetUnknown(e)
		return nil
	}
	applied, err := r.machine.Apply(e.index, e.data)
	if err != nil {
		w.fail("%s: apply entry %d: %v", r.name, e.index, err)
		return nil
	}
	r.applied++
	if d := differs(&e.applied, &applied); d != "" {
		w.fail("%s: entry %d did something else (-at first +here):\n%s", r.name, e.index, d)
		return nil
	}
	r.compareHash(e)
	return &applied
}

// differs tells how an entry's results and the claims that it began differ, "" if they
// do not. Rates are no part of the state.
func differs(want, got *fsm.Applied) string {
	if reflect.DeepEqual(want.Results, got.Results) && slices.Equal(want.Leases, got.Leases) {
		return ""
	}
	return cmp.Diff([]any{want.Results, want.Leases}, []any{got.Results, got.Leases}, alike)
}

var alike = cmp.Options{
	cmpopts.EquateEmpty(), cmpopts.IgnoreFields(fsm.TypeView{}, "SubmittedPerS", "CompletedPerS", "FailedPerS"),
	cmp.AllowUnexported(fsm.Plan{}, fsm.PlannedStep{}),
}

func hashOf(machine *fsm.Machine) [16]byte {
	s := machine.Snapshot()
	defer s.Release()
	return s.Hash()
}

// meetUnknown makes sure that a replica stops for good at what it does not know.
func (r *replica) meetUnknown(e *entry) {
	_, err := r.machine.Apply(e.index, e.tooNew)
	if !errors.Is(err, fsm.ErrUnknownCommand) {
		r.w.fail("%s: entry %d holds what this version does not know, and was applied all the same (error %v)", r.name, e.index, err)
		return
	}
	r.w.say("%s stops for good at entry %d, which is too new for it", r.name, e.index)
	r.stop()
}

// stop ends the process: its leadership too, and what was only captured.
func (r *replica) stop() {
	for _, d := range r.w.deposed {
		if d.replica == r {
			d.end()
		}
	}
	if l := r.w.leader; l != nil && l.replica == r {
		l.end()
		r.w.elections(second, newDice(r.w.seed, uint64(r.w.now)))
	}
	r.machine = nil
	if r.taken != nil {
		r.taken.Release()
		r.taken = nil
	}
}

// compareHash compares the state with the one that each entry went through, if that
// was hashed here.
func (r *replica) compareHash(e *entry) {
	if e.hash != [16]byte{} && hashOf(r.machine) != e.hash {
		r.w.fail("%s: at entry %d the state hash differs", r.name, e.index)
	}
}

// capture takes a snapshot of the state as it is now.
func (r *replica) capture() {
	if r.machine == nil || r.taken != nil || r.applied == 0 {
		return
	}
	r.w.say("%s captures a snapshot after entry %d", r.name, r.w.log[r.applied-1].index)
	r.taken, r.at = r.machine.Snapshot(), r.applied
}

// write writes the captured snapshot to disk, whatever was applied since.
func (r *replica) write() {
	if r.taken == nil {
		return
	}
	w := r.w
	var b bytes.Buffer
	_, err := r.taken.WriteTo(&b)
	r.taken.Release()
	r.taken = nil
	if err != nil {
		w.fail("%s: write snapshot: %v", r.name, err)
		return
	}
	e := w.log[r.at-1]
	if e.snapshot != nil && !bytes.Equal(e.snapshot, b.Bytes()) {
		w.fail("%s: the snapshot of entry %d differs from another replica's", r.name, e.index)
	}
	e.snapshot = b.Bytes()
	w.say("%s writes the snapshot of entry %d, %d bytes", r.name, e.index, b.Len())
	r.files = append(r.files, file{at: r.at, data: b.Bytes()})
	if len(r.files) > 2 {
		r.files = r.files[1:]
	}
}

// restart starts the process again: from its newest snapshot, and the log after
// it up to so many entries.
func (r *replica) restart(to int) {
	r.stop()
	r.hint, r.since = lease.Hint{}, r.w.now
	if n := len(r.files); n > 0 {
		r.restore(r.files[n-1])
	} else {
		r.machine, r.applied = fsm.New(), 0
	}
	r.catchUp(to)
}

// restore replaces the state by a snapshot's.
func (r *replica) restore(f file) {
	w := r.w
	machine, err := fsm.ReadSnapshot(bytes.NewReader(f.data))
	if err != nil {
		w.fail("%s: restore snapshot of entry %d: %v", r.name, w.log[f.at-1].index, err)
		return
	}
	if r.taken != nil {
		r.taken.Release()
		r.taken = nil
	}
	r.machine, r.applied = machine, f.at
	e := w.log[f.at-1]
	w.say("%s restores the snapshot of entry %d", r.name, e.index)
	if machine.Index() != e.index {
		w.fail("%s: the snapshot of entry %d restores to %d", r.name, e.index, machine.Index())
		return
	}
	r.compareHash(e)
}

// install gives the replica a snapshot that another one wrote, as Raft does to
// a follower that is far behind.
func (r *replica) install(from *replica) {
	if r.machine == nil || len(from.files) == 0 {
		return
	}
	f := from.files[len(from.files)-1]
	if f.at <= r.applied {
		return
	}
	r.restore(f)
	r.files = append(r.files[:0], f)
}
