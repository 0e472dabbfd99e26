package fsm

import (
	"github.com/claimq/claimq/fsm/claimable"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/table"
	"github.com/claimq/claimq/fsm/trail"
)

// Machine is the state. It is not safe for concurrent use: package cluster's
// adapter holds the one lock around it. Apply wants it exclusively, and so
// does Snapshot; every other method only reads.
//
// What its parts need of each other goes through it: a method that is a part's own
// reads and changes nothing but that part.
type Machine struct {
	saved   // what a snapshot holds, and all that decides
	derived // bookkeeping of it, in memory only
	effects // what the entry that is being applied did so far

	// answers is what results are made of: of memory that is theirs, or while
	// Replay runs of reused.
	answers, reused *answers
	// choosing is memory of choiceOfNext, chose what it hashed last, and choice the hash.
	choosing, chose []byte
	choice          uint64

	// rememberedMax is the bound of remembered, goneMax that of gone; only tests
	// change them.
	rememberedMax int
	goneMax       int

	// partial is the restore that is under way, nil if none is. It is derived of the
	// log alone: no snapshot has it, so none may replace the log that it is of.
	partial *partial
}

// saved is what a snapshot holds. Tasks are changed by Machine.edit and Machine.edited
// alone, which keep derived in step.
type saved struct {
	header   record.Header
	tasks    table.Table[record.Task]
	requests table.Table[record.Request] // by sequence number
	nodes    []record.NodeRecord         // sorted by UUID; replaced, never changed in place
	settings []*record.TaskType          // sorted by name, at most record.TaskTypesMax; a snapshot has copies
	gone     table.Table[record.Gone]    // removed tasks that are remembered, by id

	trail     trail.Log
	schedules []*record.ScheduleView // sorted by name, at most record.SchedulesMax; neither slice nor views change in place
}

// newSaved returns what the empty state saves: index 0, both clocks 0.
func newSaved() saved {
	return saved{header: record.Header{NextID: 1, NextToken: 1, NextRequest: 1}, trail: trail.New()}
}

// effects is what the entry that is being applied did so far: for its Applied, and for
// what follows of it in the same entry.
type effects struct {
	begun             []command.Lease // claims begun
	requeued, removed int             // for Applied
	tally             Tally           // the same
	ended             []uint64        // what it ended or removed
	told              uint32          // events of it in the trail
	checkpoint        bool            // it held a Checkpoint
	restored          bool            // a RestoreEnd of it replaced the state

	dice       claimable.Dice // of the command being applied
	changed    int            // how often a task was changed, added or removed, ever
	stepsEnded []uint64       // steps that ended, of which nothing has followed yet
	following  bool           // that is being done

	// undo is the journal while an atomic batch is applied, else nil.
	undo *undo
	// answered is how many bytes of tasks the answer of the batch that is being
	// applied holds already.
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

// Index returns the index of the last entry applied, 0 if none.
func (m *saved) Index() uint64 { return m.header.Index }

// moment returns what the entry being applied is known by in the trail and as a
// schedule's version: it grows with each entry, also where a state was restored that
// had come to a higher index elsewhere.
func (m *saved) moment() uint64 { return m.header.Moment() }

// Stamp returns the clocks as of the last entry applied.
func (m *saved) Stamp() record.Stamp { return m.header.Stamp }

// Level returns the replicated feature level.
func (m *saved) Level() uint32 { return m.header.Level }

// Chain returns the checksum of all that was applied which SetChain has set last, 0
// if it never was.
func (m *saved) Chain() uint64 { return m.header.Chain }

// SetChain is called after Apply with the checksum of all entries up to that one: it
// is part of the state, and decides nothing in it.
func (m *Machine) SetChain(chain uint64) { m.header.Chain = chain }

// Get returns the task, nil if there is none.
func (m *saved) Get(id uint64) *record.Task { return m.tasks.Get(id) }

// Assigned reports whether a task was ever given that id.
func (m *saved) Assigned(id uint64) bool { return id < m.header.NextID }

// Remnant returns a state of the same index, clocks, level and nodes, and of
// nothing that grows with the tasks. It stands in for a state that is dropped before
// another takes its place, and is not to be applied to, saved or shown.
func (m *Machine) Remnant() *Machine {
	left := New()
	left.header.Index, left.header.Stamp, left.header.Level = m.header.Index, m.header.Stamp, m.header.Level
	left.nodes = m.nodes
	return left
}
