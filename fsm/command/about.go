package command

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
func LaneOf(c Command) Lane { return RowOf(c).Lane }

// TouchesSteps reports whether a command of the kind may change more tasks than
// About.Changes says: those that are steps of the same parent, or of its task.
func TouchesSteps(c Command) bool { return RowOf(c).Family }
