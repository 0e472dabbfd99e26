package sim

import (
	"bytes"
	"reflect"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/claimq/claimq/cluster/lease"
	"github.com/claimq/claimq/fsm"
)

// entry is one entry of the model log: packed by a leader, in flight, and then committed or
// lost.
type entry struct {
	leader    *leader
	number    uint64 // in the order of packing
	proposals []*proposal
	stamp     fsm.Stamp
	packedAt  int64 // when the leader stamped it
	led       int64 // total time with a leader by then
	data      []byte
	told      bool // the proposers have been told the outcome, or that it is unknown

	index   uint64      // once it is committed; grows, with gaps: not every entry of Raft's reaches the state
	applied fsm.Applied // results in the state that every entry went through
	hash    [16]byte    // of the state after it; zero if it is not compared
}

// tell answers the proposers, unless they have been answered.
func (e *entry) tell(of func(i int) outcome) {
	if e.told {
		return
	}
	e.told = true
	for i, p := range e.proposals {
		p.done(of(i))
	}
}

// replica is one node: its clocks, and its process's knowledge of the leader's.
type replica struct {
	w           *world
	name        string
	pausedUntil int64 // the process is paused or down until then

	rate  int64      // extra rate of its clocks, in millionths
	wall  int64      // lead of its wall clock
	hint  lease.Hint // the latest received, in memory only
	since int64      // start of the process
}

// Wall returns the replica's wall clock.
func (r *replica) Wall() int64 { return epoch + r.local(r.w.now) + r.wall }

// Mono returns the replica's monotonic clock.
func (r *replica) Mono() time.Duration { return time.Duration(r.local(r.w.now)) }

// local converts a span of real time to the replica's clocks.
func (r *replica) local(d int64) int64 { return d + d/1000*r.rate/1000 }

// real is the inverse of local, rounded up.
func (r *replica) real(d int64) int64 { return d - d/1000*r.rate/1000 + 1 }

// paused returns the rest of the replica's pause.
func (r *replica) paused() int64 { return max(r.pausedUntil-r.w.now, 0) }

// crash ends the process, and starts it again after down.
func (r *replica) crash(down int64) {
	for _, d := range r.w.deposed {
		if d.replica == r {
			d.end()
		}
	}
	r.hint, r.since = lease.Hint{}, r.w.now+down
	r.pausedUntil = r.since
}

// applyFirst applies an entry that was just committed to the state that every entry goes
// through, without restores. All copies must have the same results.
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

// copied is the state of a node, built from a snapshot or from nothing, and the log after
// it.
type copied struct {
	w       *world
	machine *fsm.Machine
	applied int // number of applied entries
}

// file is a snapshot on disk.
type file struct {
	at   int // number of applied entries
	data []byte
}

// copyOf builds a state from the snapshot, nil for none, and all of the log after it.
func (w *world) copyOf(f *file) copied {
	c := copied{w: w, machine: fsm.New()}
	if f != nil {
		e := w.log[f.at-1]
		w.say("the snapshot of entry %d is restored", e.index)
		machine, err := fsm.ReadSnapshot(bytes.NewReader(f.data))
		if err != nil || machine.Index() != e.index {
			w.fail("restore the snapshot of entry %d: %v", e.index, err)
			return c
		}
		c.machine, c.applied = machine, f.at
		c.compareHash(e)
	}
	for c.applied < len(w.log) && w.failure == "" {
		c.apply(w.log[c.applied])
	}
	return c
}

// apply applies the next entry and compares the results with the first ones. It returns nil
// if that fails.
func (c *copied) apply(e *entry) *fsm.Applied {
	applied, err := c.machine.Apply(e.index, e.data)
	if err != nil {
		c.w.fail("apply entry %d: %v", e.index, err)
		return nil
	}
	c.applied++
	if d := differs(&e.applied, &applied); d != "" {
		c.w.fail("entry %d did something else (-at first +here):\n%s", e.index, d)
		return nil
	}
	c.compareHash(e)
	return &applied
}

// differs describes a difference between an entry's results and claims, "" if there is
// none. Rates are not part of the state.
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

// compareHash compares the state with the one that every entry went through, if that was
// hashed here.
func (c *copied) compareHash(e *entry) {
	if e.hash != [16]byte{} && hashOf(c.machine) != e.hash {
		c.w.fail("at entry %d the state hash differs", e.index)
	}
}

// capture takes snapshots of the leader's state and of the one that every entry went
// through.
func (w *world) capture(*replica, *dice) {
	if l := w.leader; l != nil && w.taken == nil && l.applied == len(w.log) && l.applied > 0 {
		w.say("%s captures a snapshot after entry %d", l.replica.name, w.log[l.applied-1].index)
		w.taken, w.takenAt = []*fsm.Snapshot{w.state.Snapshot(), l.machine.Snapshot()}, l.applied
	}
}

// write writes the captured snapshots, whatever was applied since. Both must have the same
// bytes.
func (w *world) write(*replica, *dice) {
	if w.taken == nil {
		return
	}
	var written [2]bytes.Buffer
	for i, s := range w.taken {
		if _, err := s.WriteTo(&written[i]); err != nil {
			w.fail("write snapshot: %v", err)
		}
		s.Release()
	}
	w.taken = nil
	index := w.log[w.takenAt-1].index
	if !bytes.Equal(written[0].Bytes(), written[1].Bytes()) {
		w.fail("two snapshots of entry %d differ", index)
	}
	w.say("the snapshot of entry %d is written, %d bytes", index, written[0].Len())
	w.files = append(w.files, &file{at: w.takenAt, data: written[0].Bytes()})
	if len(w.files) > 3 {
		w.files = slices.Delete(w.files, 1, 2)
	}
}
