package fsm

import (
	"sync/atomic"

	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/table"
	"github.com/claimq/claimq/fsm/trail"
)

// Snapshot is a captured state. Its methods are safe beside the machine's
// Apply, from one goroutine at a time.
type Snapshot struct {
	header    record.Header
	tasks     table.View[record.Task]
	requests  table.View[record.Request]
	nodes     []record.NodeRecord // sorted by UUID
	types     []*record.TaskType  // sorted by name; copies
	gone      table.View[record.Gone]
	trail     trail.View
	schedules []*record.ScheduleView // sorted by name
	released  atomic.Bool
}

// Snapshot captures the state as it is, in microseconds: records are copied
// only when they change while the snapshot lives. The caller releases it.
func (m *Machine) Snapshot() *Snapshot {
	return &Snapshot{
		header:    m.header,
		tasks:     m.tasks.View(),
		requests:  m.requests.View(),
		nodes:     m.nodes,
		types:     record.CloneTypes(m.settings),
		gone:      m.gone.View(),
		trail:     m.trail.View(),
		schedules: m.schedules,
	}
}

// Index returns the index of the captured state.
func (s *Snapshot) Index() uint64 { return s.header.Index }

// Release ends the capture. It is safe to call from any goroutine, twice too.
// Nothing but Index may be called after it.
func (s *Snapshot) Release() {
	if s.released.CompareAndSwap(false, true) {
		s.tasks.Release()
		s.requests.Release()
		s.gone.Release()
	}
}
