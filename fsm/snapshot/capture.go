package snapshot

import (
	"sync/atomic"

	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/table"
	"github.com/claimq/claimq/fsm/trail"
)

// Snapshot is a captured state. Its methods are safe beside the machine's
// Apply, from one goroutine at a time.
type Snapshot struct {
	of       Parts
	released atomic.Bool
}

// Parts are what a snapshot is of. Slices, and what they point to, are never changed.
type Parts struct {
	Header    record.Header
	Tasks     table.View[record.Task]
	Requests  table.View[record.Request]
	Nodes     []record.NodeRecord // sorted by UUID
	Types     []*record.TaskType  // sorted by name
	Gone      table.View[record.Gone]
	Trail     trail.View
	Schedules []*record.ScheduleView // sorted by name
}

// Of returns the snapshot of the parts, whose views it releases.
func Of(parts Parts) *Snapshot { return &Snapshot{of: parts} }

// Index returns the index of the captured state.
func (s *Snapshot) Index() uint64 { return s.of.Header.Index }

// Release ends the capture. It is safe to call from any goroutine, twice too.
// Nothing but Index may be called after it.
func (s *Snapshot) Release() {
	if s.released.CompareAndSwap(false, true) {
		s.of.Tasks.Release()
		s.of.Requests.Release()
		s.of.Gone.Release()
	}
}
