package fsm

import (
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/index"
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/snapshot"
)

// Machine is the state. It is not safe for concurrent use: package cluster holds the one
// lock around it. Apply and Snapshot need exclusive access; every other method only reads.
//
// Of its fields, each owner keeps saved records and what is derived of them in step. Only edit
// and edited (account.go) change a task that is in the state, because a task is in the indexes of
// several owners.
type Machine struct {
	header record.Header       // saved
	nodes  []record.NodeRecord // saved; sorted by UUID; copy on write
	trail  event.Log           // saved

	tasks  record.Table[record.Task]         // saved
	counts [record.StatusCancelled + 1]int64 // tasks by Status
	bytes  int64                             // memory of the tasks
	types  taskTypes
	turns  turns
	shares shares
	keys   *index.Names // name of an idempotency key to task id
	// keysOfTypes says that some task has had a key among the tasks of its type alone, since the
	// indexes were empty. If none had, lookups need not search for such keys.
	keysOfTypes bool
	windows     bool // the same for keys that become free by time
	parents     parents
	claims      liveClaims
	times       times
	ends        endedTasks
	gone        goneTasks
	requests    requests
	schedules   schedules

	histories histories
	rates     typeRates // of all types, also of types that are gone; not saved

	effects // what the current entry did so far

	// answers is the memory for results. During Replay it is reused; otherwise results own
	// theirs.
	answers, reused *answers
	// removing is memory for the task that is being removed.
	removing record.TaskMemory
	// lastClaim is the ClaimNext whose choice was hashed last, and lastChoice that hash; see
	// choiceOfNext. choiceBuf is scratch memory for it.
	lastClaim  command.ClaimNext
	lastChoice uint64
	choiceBuf  []byte

	// partial is the current restore, or nil. It is derived from the log and not in
	// snapshots, so none may replace the log that it comes from.
	partial *partial
}

// effects collects what the current entry did so far, for its Applied and for later steps of the
// same entry.
type effects struct {
	begun             []command.Lease // claims begun, or shortened
	requeued, removed int             // tasks that became pending or scheduled again; tasks removed
	tally             Tally           // ends by status
	ended             []uint64        // tasks ended or removed
	told              uint32          // events added to the trail
	checkpoint        bool            // whether it held a Checkpoint
	restored          bool            // whether a RestoreEnd replaced the state

	dice       index.Dice // of the current command
	changed    int        // counts all changes, additions and removals of tasks, ever
	stepsEnded []uint64   // ended steps whose consequences are still to be applied

	// undo is the journal while an atomic batch is applied, else nil.
	undo *undo
	// answered is the size of the tasks in the answer of the current batch so far.
	answered int
	// request is the id that the current batch has for the claims of its ops, or "". place
	// is the current op's.
	request string
	place   uint32
}

// undo is the journal of an atomic batch: what its ops replaced, so that all of it can be
// restored. It contains only saved data, and what the entry reports to its caller. Derived
// data of the changed records is removed and then rebuilt from the restored records by the
// code that loads snapshots, so that it comes out as if there had been no batch.
type undo struct {
	header    record.Header
	tasks     record.Journal[record.Task]
	requests  record.Journal[record.Request]
	gone      record.Journal[record.Gone]
	turns     record.Journal[record.Turn]
	shares    record.Journal[record.Share]
	types     []formerType
	counted   []counted // newest last
	timed     []timed
	dropped   []*typeState // a type's first drop comes first
	histories int          // how many there were

	// What the entry had done so far, to report to its caller.
	begun    []command.Lease
	noted    []index.Ready
	requeued int
	tally    Tally
	ended    []uint64
	trail    event.Mark
	told     uint32
}

// formerType is a type's record before a change.
type formerType struct {
	record *record.TaskType
	was    record.TaskType
}

// partial is a restore in progress: the new state, as far as its snapshot has arrived. In addition
// to the records it holds at most one chunk of the snapshot, because pieces may be cut anywhere.
type partial struct {
	begin uint64 // index of the entry that began it
	bytes uint64 // size of the snapshot
	taken uint64 // bytes received so far
	feed  *snapshot.Feed
	state *Machine // without what is indexed at the end
}

// New returns the empty state: index 0, both clocks 0.
func New() *Machine {
	m := &Machine{
		header:    record.Header{NextID: 1, NextToken: 1, NextRequest: 1},
		trail:     event.NewLog(),
		answers:   newAnswers(slabKept, 0),
		histories: newHistories(),
	}
	m.tasks = record.NewTable[record.Task](record.EncodedTasks{Names: &m.types}, record.BusyPages)
	m.requests, m.gone = newRequests(), newGoneTasks()
	m.resetIndexes()
	return m
}

// Index returns the index of the last entry applied, or 0.
func (m *Machine) Index() uint64 { return m.header.Index }

// moment identifies the current entry in the trail and in schedule versions. It grows with
// each entry, even after restoring a state that had a higher index elsewhere.
func (m *Machine) moment() uint64 { return m.header.Moment() }

// Stamp returns the clocks as of the last entry applied.
func (m *Machine) Stamp() record.Stamp { return m.header.Stamp }

// Level returns the replicated feature level.
func (m *Machine) Level() uint32 { return m.header.Level }

// Chain returns the checksum set by the last SetChain, or 0.
func (m *Machine) Chain() uint64 { return m.header.Chain }

// SetChain sets the checksum of all entries applied so far; call it after Apply. It is part
// of the state but affects nothing in it.
func (m *Machine) SetChain(chain uint64) { m.header.Chain = chain }

// Get returns the task, or nil.
func (m *Machine) Get(id uint64) *record.Task { return m.tasks.Get(id) }

// Assigned reports whether the id was ever given to a task.
func (m *Machine) Assigned(id uint64) bool { return id < m.header.NextID }

// Remnant returns a state with the same index, clocks, level and nodes, and nothing that
// grows with the tasks. It replaces a state that is dropped before a new one arrives, to
// free memory early; it must not be applied to, saved or shown.
func (m *Machine) Remnant() *Machine {
	left := New()
	left.header.Index, left.header.Stamp, left.header.Level = m.header.Index, m.header.Stamp, m.header.Level
	left.nodes = m.nodes
	return left
}

// copyOf copies the task for a result, unless that is not read after the command. The copy
// shares byte slices and the attempts log, which are never changed in place.
func (m *Machine) copyOf(t *record.Task) *record.Task {
	if m.answers.unread {
		return t
	}
	c := &m.answers.tasks.take(1)[0]
	*c = *t
	return c
}

// withCopy replaces the state's own task in a result by a copy.
func (m *Machine) withCopy(result Result) Result {
	if result.Task != nil && !result.Gone {
		result.Task = m.copyOf(result.Task)
	}
	return result
}

// refused returns a refusal with a copy of the task.
func (m *Machine) refused(code Code, t *record.Task) Result {
	return Result{Code: code, Task: m.copyOf(t)}
}

// resetIndexes empties everything derived.
func (m *Machine) resetIndexes() {
	m.counts = [record.StatusCancelled + 1]int64{}
	m.bytes = 0
	m.types.reset()
	m.shares.set = 0
	m.keys, m.keysOfTypes, m.windows = index.NewNames(), false, false
	m.parents.reset()
	m.claims.reset()
	m.schedules.reset()
	m.times.reset()
	m.ends.reset()
	m.requests.reset()
	m.gone.reset()
}
