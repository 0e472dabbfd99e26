package snapshot

import (
	"math"

	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// stateScale is a Builder that builds nothing: it estimates the memory that the state would take.
// It keeps only the names of types, and the queues and levels of their pending tasks.
type stateScale struct {
	held     int64  // bytes of tasks, their types, claim requests and removed tasks
	tasks    uint64 // number of tasks
	lastTask uint64
	pages    uint64 // pages that have tasks
	turnPage uint64 // the last page that has turns, plus 1
	chunks   int64  // of the trail
	few      int64  // bytes of schedules and histories
	types    map[string]*typeScale
}

// typeScale has the different attempts left of the pending tasks of a type or of a share, and the
// priorities with each of them.
type typeScale struct {
	queues map[int32]struct{}
	levels map[level]struct{}
	shares map[string]*typeScale // those with pending or claimed tasks, or saved
}

type level struct{ left, priority int32 }

// Header ignores the header.
func (w *stateScale) Header(record.Header, event.Header) {}

// Task adds the task.
func (w *stateScale) Task(t *record.Task, _ []byte) error {
	w.held += record.HeldBytes(t)
	if group := record.GroupOf(t); group != "" {
		w.held += record.BytesOfGroup(group) // as if the task were alone in the group
	}
	if w.tasks == 0 || record.PageOf(t.ID) != record.PageOf(w.lastTask) {
		w.pages++
	}
	w.tasks, w.lastTask = w.tasks+1, t.ID
	ts := w.addType(t.Type)
	switch key := t.Opts().ShareKey; {
	case t.Status != record.StatusPending && t.Status != record.StatusClaimed:
	case key != "":
		w.addToShare(ts, key, t)
	case t.Status == record.StatusPending:
		w.held -= ts.bytes(t.Type)
		ts.add(t)
		w.held += ts.bytes(t.Type)
	}
	return nil
}

// addToShare adds a pending or claimed task with a share key.
func (w *stateScale) addToShare(ts *typeScale, key string, t *record.Task) {
	sh := ts.shares[key]
	if sh == nil {
		if ts.shares == nil {
			ts.shares = make(map[string]*typeScale)
		}
		sh = new(typeScale)
		ts.shares[key] = sh
	} else {
		w.held -= sh.bytesOfShare(key)
	}
	if t.Status == record.StatusPending {
		sh.add(t)
	}
	w.held += sh.bytesOfShare(key)
}

// addType returns the type; a new one is counted.
func (w *stateScale) addType(name string) *typeScale {
	ts := w.types[name]
	if ts != nil {
		return ts
	}
	if w.types == nil {
		w.types = make(map[string]*typeScale)
	}
	ts = new(typeScale)
	w.types[name] = ts
	w.held += ts.bytes(name)
	return ts
}

// add adds a pending task as if it were the first of its group, although later ones of a
// group are in no queue.
func (ts *typeScale) add(t *record.Task) {
	if ts.queues == nil {
		ts.queues, ts.levels = make(map[int32]struct{}), make(map[level]struct{})
	}
	l := level{left: t.MaxAttempts - t.Attempts, priority: t.Priority}
	if t.MaxAttempts == 0 {
		l.left = math.MaxInt32
	}
	ts.queues[l.left] = struct{}{}
	ts.levels[l] = struct{}{}
}

func (ts *typeScale) bytes(name string) int64 {
	return record.BytesOfType(name, len(ts.queues), len(ts.levels))
}

func (ts *typeScale) bytesOfShare(key string) int64 {
	return record.BytesOfShare(key, len(ts.queues), len(ts.levels))
}

// Request adds the claim request.
func (w *stateScale) Request(_ uint64, q *record.Request) { w.held += record.BytesOfRequest(q) }

// Gone adds the removed task.
func (w *stateScale) Gone(_ uint64, g *record.Gone) error {
	w.held += record.BytesOfGone(g)
	return nil
}

// Trail counts the chunk.
func (w *stateScale) Trail(*event.Chunk) { w.chunks++ }

// Turn adds the turn.
func (w *stateScale) Turn(number uint64, _ *record.Turn) {
	w.held += record.TurnBytes
	if page := record.PageOf(number) + 1; page != w.turnPage {
		w.turnPage = page
		w.held += record.PageSize * record.TurnPlaceBytes
	}
}

// Share adds the saved share, and the share if it has no tasks.
func (w *stateScale) Share(_ uint64, of *record.Share) {
	w.held += record.ShareRecordBytes
	ts := w.addType(of.Type)
	if ts.shares[of.Key] == nil {
		if ts.shares == nil {
			ts.shares = make(map[string]*typeScale)
		}
		ts.shares[of.Key] = new(typeScale)
		w.held += ts.shares[of.Key].bytesOfShare(of.Key)
	}
}

// Finish adds the remaining records.
func (w *stateScale) Finish(few Few) error {
	for _, t := range few.Types {
		if ts := w.addType(t.Name); t.Settings.Fair {
			w.held += int64(1+len(ts.shares)) * record.FairBytes
		}
	}
	for _, v := range few.Schedules {
		w.few += record.BytesOfSchedule(v)
	}
	for _, h := range few.Histories {
		w.few += record.BytesOfHistory(h)
	}
	return nil
}

// bytes estimates the memory of the state after all records were read.
func (w *stateScale) bytes() int64 {
	n := w.held + w.few + int64(w.pages*record.PageSize-w.tasks)*record.PlaceBytes
	n += w.chunks * event.ChunkBytes
	if w.chunks > 0 {
		n += int64(w.pages) * event.LastPageBytes
	}
	return n
}
