package fsm

import (
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/table"
	"github.com/claimq/claimq/fsm/trail"
)

// stateScale adds up the memory that the records of a snapshot would take as a
// state. It keeps none.
type stateScale struct {
	held     int64  // bytes of tasks, claim requests and removed tasks
	tasks    uint64 // how many there are
	lastTask uint64
	pages    uint64 // with tasks
	chunks   int64  // of the trail
}

func (w *stateScale) task(t *record.Task, _ []byte) error {
	w.held += record.HeldBytes(t)
	if group := record.GroupOf(t); group != "" {
		w.held += record.BytesOfGroup(group) // as if it were alone there
	}
	if w.tasks == 0 || table.PageOf(t.ID) != table.PageOf(w.lastTask) {
		w.pages++
	}
	w.tasks, w.lastTask = w.tasks+1, t.ID
	return nil
}

func (w *stateScale) request(_ uint64, q *record.Request) { w.held += record.BytesOfRequest(q) }

func (w *stateScale) gone(_ uint64, g *record.Gone) error {
	w.held += record.BytesOfGone(g)
	return nil
}

func (w *stateScale) trail(*trail.Chunk) { w.chunks++ }

// bytes estimates the memory that the state takes, with the records of which there
// are few, once all were read.
func (w *stateScale) bytes(few *Machine) int64 {
	n := w.held + int64(w.pages*table.PageSize-w.tasks)*record.PlaceBytes
	for _, v := range few.schedules {
		n += record.BytesOfSchedule(v)
	}
	n += w.chunks * trail.ChunkBytes
	if w.chunks > 0 {
		n += int64(w.pages) * trail.LastPageBytes
	}
	return n
}
