package sim

import (
	"bytes"
	"errors"
	"time"

	"github.com/claimq/claimq/cluster/lease"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/jepsen/sim/model"
)

// entry is one committed entry of the model log.
type entry struct {
	index    uint64 // grows, with gaps: not every entry of Raft's reaches the state
	term     uint64 // of the leader that stamped it
	data     []byte
	commands []*model.Command
	sentAt   []int64 // per command: when its request was sent, or the leader decided it
	stamp    fsm.Stamp
	packedAt int64 // when the leader stamped it
	led      int64 // how long there had been leaders by then
	// tooNew, if not nil, is what a replica of an older version reads in place of
	// data: something that it does not know.
	tooNew []byte

	want  []model.Answer // the model's
	begun []model.Begun
	// The state after it, once a replica has been hashed there.
	hashed bool
	hash   [16]byte
	// snapshot is what the first snapshot taken here looked like.
	snapshot []byte
	watched  bool
	told     []model.Told // events, the model's
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

// apply applies the next entry and compares its results with the model's.
func (r *replica) apply(e *entry) *fsm.Applied {
	w := r.w
	data := e.data
	if r.old && e.tooNew != nil {
		r.meetUnknown(e)
		return nil
	}
	applied, err := r.machine.Apply(e.index, data)
	if err != nil {
		w.fail("%s: apply entry %d: %v", r.name, e.index, err)
		return nil
	}
	r.applied++
	if len(applied.Results) != len(e.commands) || applied.Index != e.index {
		w.fail("%s: entry %d: %d results at index %d for %d commands", r.name, e.index, len(applied.Results), applied.Index, len(e.commands))
		return nil
	}
	if e.want == nil {
		w.answerOf(e, applied.Results)
	}
	for i := range applied.Results {
		if d := differs(&applied.Results[i], &e.want[i]); d != "" {
			w.fail("%s: entry %d, command %d (%v): %s", r.name, e.index, i, e.commands[i], d)
			return nil
		}
	}
	if len(applied.Leases) != len(e.begun) {
		w.fail("%s: entry %d: %d claims begun, the model has %d", r.name, e.index, len(applied.Leases), len(e.begun))
		return nil
	}
	for i, l := range applied.Leases {
		if b := e.begun[i]; l.TaskID != b.ID || l.Token != b.Token || l.EndU != b.EndU || l.Seq != 1 {
			w.fail("%s: entry %d: lease %+v begun, the model has %+v", r.name, e.index, l, b)
			return nil
		}
	}
	events := eventsOf(r.machine, e.index)
	if d := eventsDiffer(events, e.told); d != "" || applied.Events != (len(e.told) > 0) {
		w.fail("%s: entry %d, events %v: %s", r.name, e.index, applied.Events, d)
		return nil
	}
	if !e.watched {
		e.watched = true
		w.learn(r.machine)
		w.watch.entry(w, e, r.machine, &applied, events)
	}
	if e.index%w.profile.hashEvery == 0 {
		r.compareHash(e)
	}
	return &applied
}

// answerOf lets the model apply an entry. It is told what the machine made of
// it where the contract leaves that open: it checks that this was allowed.
func (w *world) answerOf(e *entry, results []fsm.Result) {
	hints := make([]model.Hint, len(results))
	for i := range results {
		hints[i] = hintOf(&results[i])
	}
	w.model.Index = e.index
	e.want = w.model.Entry(e.stamp.U, e.stamp.T, e.commands, hints)
	e.begun, e.told = w.model.Begun, w.model.Since(e.index)
}

func hintOf(r *fsm.Result) model.Hint {
	h := model.Hint{Evicted: r.Evicted}
	for i := range r.Claims {
		h.Picks = append(h.Picks, r.Claims[i].Task.ID)
	}
	for i := range r.Results {
		h.Ops = append(h.Ops, hintOf(&r.Results[i]))
	}
	return h
}

// learn takes the times from the machine that the entry set within bounds.
func (w *world) learn(m *fsm.Machine) {
	for _, t := range w.model.Unsure {
		now := w.model.Find(t.ID)
		if now == nil || now.RunAt != t.RunAt {
			continue
		}
		if got := m.Get(t.ID); got != nil && !t.RunAt.Is(got.RunAt) {
			w.fail("task %d waits until %d, its backoff allows %d to %d", t.ID, got.RunAt, t.RunAt.Least, t.RunAt.Most)
			return
		}
	}
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

// compareHash compares the state with that of the other replicas at the same
// entry, and, when the model is there too, with the model.
func (r *replica) compareHash(e *entry) {
	w := r.w
	s := r.machine.Snapshot()
	hash := s.Hash()
	s.Release()
	if e.hashed && hash != e.hash {
		w.fail("%s: at entry %d the state hash differs from another replica's", r.name, e.index)
		return
	}
	e.hashed, e.hash = true, hash
	if d := trailDiffers(r.machine, w.model, e.index); d != "" {
		w.fail("%s: at entry %d: %s", r.name, e.index, d)
		return
	}
	if r.applied == len(w.log) {
		if d := stateDiffers(r.machine, w.model); d != "" {
			w.fail("%s: at entry %d: %s", r.name, e.index, d)
		}
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
