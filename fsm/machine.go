package fsm

import (
	"io"
	"iter"
)

// Machine is the state. It is not safe for concurrent use: package cluster's
// adapter holds the one lock around it. Apply wants it exclusively, and so
// does Snapshot; every other method only reads.
type Machine struct{}

// New returns the empty state: index 0, both clocks 0.
func New() *Machine { return &Machine{} }

// Apply applies the entry of the log at index, in the order of its commands.
// Errors: ErrUnknownCommand and ErrCorrupt, wrapped; then the state may be
// half changed and the caller must end the process.
func (m *Machine) Apply(index uint64, entry []byte) (Applied, error) { panic("stub") }

// Index returns the index of the last entry applied, 0 if none.
func (m *Machine) Index() uint64 { panic("stub") }

// Stamp returns the clocks as of the last entry applied.
func (m *Machine) Stamp() Stamp { panic("stub") }

// Level returns the replicated feature level.
func (m *Machine) Level() uint32 { panic("stub") }

// Get returns the task, nil if there is none.
func (m *Machine) Get(id uint64) *Task { panic("stub") }

// ByKey returns the task that has the idempotency key, nil if none has.
func (m *Machine) ByKey(key string) *Task { panic("stub") }

// List returns one page.
func (m *Machine) List(q ListQuery) ListPage { panic("stub") }

// Claimable reports whether applying c now would take a task or repeat an
// earlier answer.
func (m *Machine) Claimable(c ClaimNext) bool { panic("stub") }

// Stats returns the counts, exact at Index.
func (m *Machine) Stats(now Stamp) Stats { panic("stub") }

// Bytes estimates the memory that the state holds.
func (m *Machine) Bytes() int64 { panic("stub") }

// ClaimCount returns how many claims are live.
func (m *Machine) ClaimCount() int { panic("stub") }

// Lease returns the lease of the task's claim, ok false if it is not claimed.
func (m *Machine) Lease(taskID uint64) (l Lease, ok bool) { panic("stub") }

// Leases yields the lease of every live claim, in token order.
func (m *Machine) Leases() iter.Seq[Lease] { panic("stub") }

// Node returns what is recorded of the node, ok false if nothing is.
func (m *Machine) Node(uuid string) (n NodeRecord, ok bool) { panic("stub") }

// Nodes returns the node records, sorted by UUID. The caller owns the slice.
func (m *Machine) Nodes() []NodeRecord { panic("stub") }

// Snapshot captures the state as it is, in microseconds: records are copied
// only when they change while the snapshot lives. The caller releases it.
func (m *Machine) Snapshot() *Snapshot { panic("stub") }

// ReadSnapshot builds the state that a snapshot holds. It verifies every
// checksum and count; on an error (ErrCorrupt, or r's) there is no machine.
func ReadSnapshot(r io.Reader) (*Machine, error) { panic("stub") }

// Snapshot is a captured state. Its methods are safe beside the machine's
// Apply, from one goroutine at a time.
type Snapshot struct{}

// WriteTo writes the snapshot in the format of docs/formats.md.
func (s *Snapshot) WriteTo(w io.Writer) (int64, error) { panic("stub") }

// Hash returns the state hash: equal states have equal hashes on every node.
func (s *Snapshot) Hash() [16]byte { panic("stub") }

// Index returns the index of the captured state.
func (s *Snapshot) Index() uint64 { panic("stub") }

// Release ends the capture. It is safe to call from any goroutine, twice too.
func (s *Snapshot) Release() { panic("stub") }

// ListQuery selects and orders the tasks of a page. Zero fields do not filter.
type ListQuery struct {
	Status        Status
	Type          string
	WorkerID      string
	Key           string
	CreatedAfter  int64 // ms, exclusive
	CreatedBefore int64 // ms, exclusive
	Descending    bool  // by id
	Limit         int   // 1 to 1,000
	// From is the cursor: the first id to look at, 0 = the start.
	From uint64
}

// ListPage is one page of a list.
type ListPage struct {
	Tasks []*Task // read-only, valid under the lock
	// Next is the cursor of the next page, 0 if there is no more. A page looks
	// at 10,000 records or 8 MiB at most, so it may be short with Next set.
	Next uint64
}

// Stats are the counts of the state.
type Stats struct {
	Index              uint64
	Counts             [StatusCancelled + 1]int64 // by Status
	Types              []TypeStats                // sorted by type
	Bytes              int64
	OldestPendingAgeMS int64 // 0 if nothing is pending
}

// TypeStats are the counts of one type.
type TypeStats struct {
	Type   string
	Counts [StatusCancelled + 1]int64
}
