package fsm

import (
	"iter"

	"github.com/tidwall/btree"
)

// Machine is the state. It is not safe for concurrent use: package cluster's
// adapter holds the one lock around it. Apply wants it exclusively, and so
// does Snapshot; every other method only reads.
type Machine struct {
	// Saved: what a snapshot holds, and all that decides.

	header   header
	tasks    table[Task]
	requests table[request] // by sequence number
	nodes    []NodeRecord   // sorted by UUID; replaced, never changed in place

	// Derived: bookkeeping in memory only, built anew by rebuild.

	counts     [StatusCancelled + 1]int64  // by Status
	types      map[string]*typeState       // those that have tasks
	ready      readyTypes                  // types with pending tasks
	keys       map[string]uint64           // idempotency key to task id
	claims     btree.Map[uint64, claimRef] // live claims by token
	requestIDs map[string]uint64           // claim_request_id to sequence number
	forgetting *btree.BTreeG[forgetAt]     // requests without a live claim
	remembered int                         // claims in all requests
	bytes      int64                       // the estimate that Bytes returns
	begun      []Lease                     // claims begun by the entry being applied
}

// header is the part of the saved state that is not a record.
type header struct {
	Index uint64 // of the last entry applied
	Stamp Stamp
	Level uint32 // replicated feature level
	// The next ones to give out, from 1. All are below 2^53.
	NextID      uint64
	NextToken   uint64
	NextRequest uint64 // sequence number of claim requests
}

// request is a claim request that is remembered, so that its repeat gets the
// first answer. It is saved under its sequence number.
type request struct {
	ID       string // claim_request_id
	WorkerID string
	// Choice is a hash of what chose the tasks: kind of command, task id or
	// types, order and limit.
	Choice uint64
	Claims []requestClaim // in the order of the answer, never changed
	// Live counts the claims that have not ended.
	Live int32
	// ForgetU is when it is forgotten by the lease clock; 0 while Live > 0.
	ForgetU int64
}

// requestClaim is one claim of a remembered answer.
type requestClaim struct {
	TaskID uint64
	Token  uint64
}

// claimRef is what the index of live claims knows of one.
type claimRef struct {
	task    uint64 // id
	request uint64 // sequence number, 0 if none remembers it
}

// New returns the empty state: index 0, both clocks 0.
func New() *Machine {
	m := &Machine{header: header{NextID: 1, NextToken: 1, NextRequest: 1}}
	m.resetIndexes()
	return m
}

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
