package fsm

import (
	"github.com/claimq/claimq/fsm/claimable"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/table"
	"github.com/claimq/claimq/fsm/trail"
)

// Machine is the state. It is not safe for concurrent use: package cluster holds the one
// lock around it. Apply and Snapshot need exclusive access; every other method only reads.
//
// A method of a part, such as saved or derived, reads and changes only that part. What
// concerns several parts is a method of Machine.
type Machine struct {
	saved   // what a snapshot contains; nothing else affects results
	derived // computed from it, in memory only
	effects // what the current entry did so far

	// answers is the memory for results. During Replay it is reused; otherwise results own
	// theirs.
	answers, reused *answers
	// choosing is scratch memory for choiceOfNext; chose was hashed last, with the
	// result choice.
	choosing, chose []byte
	choice          uint64

	// rememberedMax bounds remembered and goneMax bounds gone. Only tests change them.
	rememberedMax int
	goneMax       int

	// partial is the current restore, or nil. It is derived from the log and not in
	// snapshots, so none may replace the log that it comes from.
	partial *partial
}

// saved holds the data that a snapshot contains. Only Machine.edit and Machine.edited change tasks,
// which keeps derived in step.
type saved struct {
	header   record.Header
	tasks    table.Table[record.Task]
	requests table.Table[record.Request] // by sequence number
	nodes    []record.NodeRecord         // sorted by UUID; copy on write
	settings []*record.TaskType          // sorted by name, at most record.TaskTypesMax; a snapshot has copies
	gone     table.Table[record.Gone]    // removed tasks that are remembered, by id

	trail     trail.Log
	schedules []*record.ScheduleView // sorted by name, at most record.SchedulesMax; slice and views are copy on write
}

// newSaved returns the saved part of the empty state.
func newSaved() saved {
	return saved{header: record.Header{NextID: 1, NextToken: 1, NextRequest: 1}, trail: trail.New()}
}

// effects collects what the current entry did so far, for its Applied and for later steps of the
// same entry.
type effects struct {
	begun             []command.Lease // claims begun
	requeued, removed int             // claims begun
	tally             Tally           // ends by status
	ended             []uint64        // tasks ended or removed
	told              uint32          // events added to the trail
	checkpoint        bool            // whether it held a Checkpoint
	restored          bool            // whether a RestoreEnd replaced the state

	dice       claimable.Dice // of the current command
	changed    int            // counts all changes, additions and removals of tasks, ever
	stepsEnded []uint64       // ended steps whose consequences are still to be applied
	following  bool           // whether they are being applied

	// undo is the journal while an atomic batch is applied, else nil.
	undo *undo
	// answered is the size of the tasks in the answer of the current batch so far.
	answered int
}

// New returns the empty state: index 0, both clocks 0.
func New() *Machine {
	m := &Machine{
		saved:         newSaved(),
		rememberedMax: rememberedMax,
		goneMax:       goneMax,
		answers:       newAnswers(slabKept, 0),
	}
	m.tasks = table.New[record.Task](record.RestingTasks{Names: m}, record.BusyPages)
	m.requests = table.New[record.Request](record.RestingRequests{}, busyRequests)
	m.gone = table.New[record.Gone](record.RestingGone{}, busyGone)
	m.resetIndexes()
	return m
}

// Index returns the index of the last entry applied, or 0.
func (m *saved) Index() uint64 { return m.header.Index }

// moment identifies the current entry in the trail and in schedule versions. It grows with
// each entry, even after restoring a state that had a higher index elsewhere.
func (m *saved) moment() uint64 { return m.header.Moment() }

// Stamp returns the clocks as of the last entry applied.
func (m *saved) Stamp() record.Stamp { return m.header.Stamp }

// Level returns the replicated feature level.
func (m *saved) Level() uint32 { return m.header.Level }

// Chain returns the checksum set by the last SetChain, or 0.
func (m *saved) Chain() uint64 { return m.header.Chain }

// SetChain sets the checksum of all entries applied so far; call it after Apply. It is part
// of the state but affects nothing in it.
func (m *Machine) SetChain(chain uint64) { m.header.Chain = chain }

// Get returns the task, or nil.
func (m *saved) Get(id uint64) *record.Task { return m.tasks.Get(id) }

// Assigned reports whether the id was ever given to a task.
func (m *saved) Assigned(id uint64) bool { return id < m.header.NextID }

// Remnant returns a state with the same index, clocks, level and nodes, and nothing that
// grows with the tasks. It replaces a state that is dropped before a new one arrives, to
// free memory early; it must not be applied to, saved or shown.
func (m *Machine) Remnant() *Machine {
	left := New()
	left.header.Index, left.header.Stamp, left.header.Level = m.header.Index, m.header.Stamp, m.header.Level
	left.nodes = m.nodes
	return left
}
