package snapshot

import (
	"sync/atomic"

	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// Snapshot is a captured state. One goroutine at a time may use it, also during the
// machine's Apply.
type Snapshot struct {
	of       Parts
	released atomic.Bool
}

// Parts are the contents of a snapshot. Slices, and what they point to, must never be
// changed.
type Parts struct {
	Header    record.Header
	Tasks     record.View[record.Task]
	Requests  record.View[record.Request]
	Nodes     []record.NodeRecord // sorted by UUID
	Types     []*record.TaskType  // sorted by name
	Gone      record.View[record.Gone]
	Trail     event.View
	Schedules []*record.ScheduleView // sorted by name
	Turns     record.View[record.Turn]
	Shares    record.View[record.Share]
	Histories []record.History // in the order in which they began
}

// Of returns the snapshot of the parts. Releasing it releases their views.
func Of(parts Parts) *Snapshot { return &Snapshot{of: parts} }

// Index returns the index of the captured state.
func (s *Snapshot) Index() uint64 { return s.of.Header.Index }

// Release ends the capture. It may be called from any goroutine and more than once.
// Afterwards only Index may be called.
func (s *Snapshot) Release() {
	if s.released.CompareAndSwap(false, true) {
		s.of.Tasks.Release()
		s.of.Requests.Release()
		s.of.Gone.Release()
		s.of.Turns.Release()
		s.of.Shares.Release()
	}
}
