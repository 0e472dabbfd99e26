package command

import "github.com/claimq/claimq/fsm/record"

// About says what a command names and how much it may change, for code that passes commands
// on.
type About struct {
	// Known is true if the fields below name everything that the command may touch. If it
	// is false, the command may touch any task and they are not set.
	Known bool

	ID       uint64           // the task, 0 = none
	WorkerID string           // the worker that has or wants that task; "" = none
	Submits  []record.NewTask // tasks that it adds, now or later
	Claims   bool             // whether it claims tasks, of Types (nil = any), for the worker Claimer
	Claimer  string
	Types    []string
	Type     string    // the task type whose settings it changes, "" = none
	Schedule string    // the schedule, "" = none
	Ops      []Command // of a batch; each has an About of its own

	// Changes is the number of tasks that it may change if none of them is a step or has steps.
	Changes int
}

// AboutOf returns what the command names. Its slices are the command's own.
func AboutOf(c Command) About { return c.about() }

// Lane is a class of commands waiting to be packed into entries. Lanes are packed in this
// order.
type Lane uint8

// The lanes.
const (
	LaneInternal Lane = iota // ticks, evictions, checkpoints, node records
	LaneSettle               // changes of existing tasks, and batches
	LaneExpire               // after settle, so that an expiry never overtakes an extend
	LaneClaim
	LaneSubmit
	LaneCount // number of lanes
)

// LaneOf returns the command's lane.
func LaneOf(c Command) Lane { return RowOf(c).Lane }

// TouchesSteps reports whether such a command may change more tasks than About.Changes:
// steps of the same parent, or of the task itself.
func TouchesSteps(c Command) bool { return RowOf(c).Family }
