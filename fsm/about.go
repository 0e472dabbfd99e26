package fsm

import "github.com/claimq/claimq/fsm/record"

// About is what a command names, and how much it may change: what those who pass it on
// ask of it.
type About struct {
	// Known is true if the fields below name all that the command may touch; else it
	// may touch any task, and they are not set.
	Known bool

	ID       uint64           // the task that it is about, 0 = none
	WorkerID string           // the worker that has that task, or asks for it; "" = none
	Submits  []record.NewTask // tasks that it adds, now or later
	Claims   bool             // it claims tasks, of Types (nil = any), for the worker Claimer
	Claimer  string
	Types    []string
	Type     string    // the task type whose settings it changes, "" = none
	Schedule string    // the schedule that it is about, "" = none
	Ops      []Command // of a batch; each is about what it is by itself

	// Changes is how many tasks it may change, if none of them is a step or has steps.
	Changes int
}

// AboutOf says what the command names. The slices are the command's own.
func AboutOf(c Command) About { return c.about() }

// Lane is a class of commands that wait to be packed into entries. Lanes are packed in
// this order.
type Lane uint8

// The lanes.
const (
	LaneInternal Lane = iota // ticks, evictions, checkpoints, node records
	LaneSettle               // what changes tasks that are there, and batches
	LaneExpire               // after settle: an expiry never overtakes an extend
	LaneClaim
	LaneSubmit
	LaneCount // how many there are
)

// LaneOf returns the command's lane.
func LaneOf(c Command) Lane { return c.kind().row().lane }

// TouchesSteps reports whether a command of the kind may change more tasks than
// About.Changes says: those that are steps of the same parent, or of its task.
func TouchesSteps(c Command) bool { return c.kind().row().family }

// ReachOf returns how many tasks a command may change, of those that a batch may
// hold and of a batch, which is the sum of its ops: each as often as an op names it.
// Of any other it is 1. What a batch and an entry change is bounded by it.
func (m *Machine) ReachOf(c Command) int {
	row, about := c.kind().row(), c.about()
	switch {
	case about.Ops != nil:
		n := 0
		for _, op := range about.Ops {
			n += m.ReachOf(op)
		}
		return n
	case !row.op:
		return 1
	case row.family:
		return about.Changes - 1 + m.Reach(about.ID)
	}
	return about.Changes
}
