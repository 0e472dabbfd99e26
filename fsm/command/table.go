package command

import (
	"strconv"

	"github.com/claimq/claimq/fsm/record"
)

// Command is one mutation as the log holds it. Only the types in the table below implement it. A
// file of this package has each with its meaning, what it names, and its encoding. A command owns
// its byte slices: they must not change after it was proposed or decoded.
type Command interface {
	// kind returns the command's type number in the log. Numbers are never reused.
	kind() Kind
	// about says what the command names and how much it may change. Its slices are the
	// command's own.
	about() About
	// code reads or writes the fields of the command's body: the message of the same name
	// in fsm.proto. It returns the command read, which shares no memory with the body, and f
	// after that.
	code(f fields) (Command, fields)
}

// later is implemented by commands with fields that are newer than the command itself, and by
// Batch for its ops.
type later interface {
	// needs returns the feature level that knows all fields that are set, or 0 if the
	// command's own level does.
	needs() uint32
}

// Kind is the type number of a command.
type Kind uint8

// Kinds 1 to 127 change tasks, 128 and above change the cluster's own records.
const (
	KindSubmit    Kind = 1
	KindClaimNext Kind = 2
	KindClaimTask Kind = 3
	KindComplete  Kind = 4
	KindFail      Kind = 5
	KindExtend    Kind = 6
	KindRelease   Kind = 7
	KindRetry     Kind = 8
	KindDelete    Kind = 9
	KindExpire    Kind = 10
	KindCancel    Kind = 11
	KindPatch     Kind = 12
	KindSetType   Kind = 13
	KindEvict     Kind = 14
	KindBatch     Kind = 15
	KindAct       Kind = 16

	KindClaimFinalization   Kind = 17
	KindExtendFinalization  Kind = 18
	KindReleaseFinalization Kind = 19
	KindFinalize            Kind = 20

	KindMoveTasks Kind = 21
	KindSignal    Kind = 22
	KindSetShare  Kind = 23
	KindAddSteps  Kind = 24

	KindTick       Kind = 128
	KindCheckpoint Kind = 129
	KindSetNode    Kind = 130
	KindRemoveNode Kind = 131
	KindSetLevel   Kind = 132

	KindSetSchedule    Kind = 133
	KindDeleteSchedule Kind = 134
	KindRunSchedules   Kind = 135
	KindSetTrail       Kind = 136
	KindTell           Kind = 137
	KindRestoreBegin   Kind = 138
	KindRestoreChunk   Kind = 139
	KindRestoreEnd     Kind = 140

	KindSetJoinToken    Kind = 141
	KindDeleteJoinToken Kind = 142
	KindUseJoinToken    Kind = 143

	KindForget Kind = 144

	KindSetPageSecret Kind = 145
	KindSetDefaults   Kind = 146
)

// Row describes all commands of one kind.
type Row struct {
	of    Command // the type's zero value
	Name  string  // in messages
	Level uint32  // the feature level that introduced the kind
	Lane  Lane
	// Op: a batch may hold it.
	Op bool
	// Family: it may also change steps of its task, or of its task's parent.
	Family bool
	// Steps: its answer includes the steps of its task.
	Steps bool
	// Restore: it may come between the chunks of a restore; any other command abandons the
	// restore.
	Restore bool
}

// table lists the commands by kind. A kind that is not in it is unknown.
var table = [...]Row{
	KindSubmit:    {of: Submit{}, Name: "submit", Level: 1, Lane: LaneSubmit, Op: true, Steps: true},
	KindClaimNext: {of: ClaimNext{}, Name: "claim next", Level: 1, Lane: LaneClaim, Op: true},
	KindClaimTask: {of: ClaimTask{}, Name: "claim task", Level: 1, Lane: LaneClaim},
	KindComplete:  {of: Complete{}, Name: "complete", Level: 1, Lane: LaneSettle, Op: true, Family: true},
	KindFail:      {of: Fail{}, Name: "fail", Level: 1, Lane: LaneSettle, Op: true, Family: true},
	KindExtend:    {of: Extend{}, Name: "extend", Level: 1, Lane: LaneSettle, Op: true},
	KindRelease:   {of: Release{}, Name: "release", Level: 1, Lane: LaneSettle, Op: true, Family: true},
	KindRetry:     {of: Retry{}, Name: "retry", Level: 1, Lane: LaneSettle, Op: true, Family: true, Steps: true},
	KindDelete:    {of: Delete{}, Name: "delete", Level: 1, Lane: LaneSettle, Op: true, Family: true},
	KindExpire:    {of: Expire{}, Name: "expire", Level: 1, Lane: LaneExpire},
	KindCancel:    {of: Cancel{}, Name: "cancel", Level: 1, Lane: LaneSettle, Op: true, Family: true, Steps: true},
	KindPatch:     {of: Patch{}, Name: "patch", Level: 1, Lane: LaneSettle, Steps: true},
	KindSetType:   {of: SetType{}, Name: "set type", Level: 1, Lane: LaneSettle},
	KindEvict:     {of: Evict{}, Name: "evict", Level: 1, Lane: LaneInternal},
	KindBatch:     {of: Batch{}, Name: "batch", Level: 1, Lane: LaneSettle, Family: true}, // its ops may be Family
	KindAct:       {of: Act{}, Name: "act", Level: 1, Lane: LaneSettle},

	KindClaimFinalization:   {of: ClaimFinalization{}, Name: "claim finalization", Level: 1, Lane: LaneSettle},
	KindExtendFinalization:  {of: ExtendFinalization{}, Name: "extend finalization", Level: 1, Lane: LaneSettle},
	KindReleaseFinalization: {of: ReleaseFinalization{}, Name: "release finalization", Level: 1, Lane: LaneSettle},
	KindFinalize:            {of: Finalize{}, Name: "finalize", Level: 1, Lane: LaneSettle},

	KindMoveTasks: {of: MoveTasks{}, Name: "move tasks", Level: 1, Lane: LaneSettle},
	KindSetShare:  {of: SetShare{}, Name: "set share", Level: 1, Lane: LaneSettle},

	KindSignal:   {of: Signal{}, Name: "signal", Level: 1, Lane: LaneSettle},
	KindAddSteps: {of: AddSteps{}, Name: "add steps", Level: 1, Lane: LaneSettle, Family: true}, // each step gets the new plan

	KindTick:       {of: Tick{}, Name: "tick", Level: 1, Lane: LaneInternal},
	KindCheckpoint: {of: Checkpoint{}, Name: "checkpoint", Level: 1, Lane: LaneInternal},
	KindSetNode:    {of: SetNode{}, Name: "set node", Level: 1, Lane: LaneInternal},
	KindRemoveNode: {of: RemoveNode{}, Name: "remove node", Level: 1, Lane: LaneInternal},
	KindSetLevel:   {of: SetLevel{}, Name: "set level", Level: 1, Lane: LaneInternal},

	KindSetSchedule:    {of: SetSchedule{}, Name: "set schedule", Level: 1, Lane: LaneSettle},
	KindDeleteSchedule: {of: DeleteSchedule{}, Name: "delete schedule", Level: 1, Lane: LaneSettle},
	KindRunSchedules:   {of: RunSchedules{}, Name: "run schedules", Level: 1, Lane: LaneInternal},
	KindSetTrail:       {of: SetTrail{}, Name: "set trail", Level: 1, Lane: LaneInternal},
	KindTell:           {of: Tell{}, Name: "tell", Level: 1, Lane: LaneInternal},
	KindRestoreBegin:   {of: RestoreBegin{}, Name: "restore begin", Level: 1, Lane: LaneInternal, Restore: true},
	KindRestoreChunk:   {of: RestoreChunk{}, Name: "restore chunk", Level: 1, Lane: LaneInternal, Restore: true},
	KindRestoreEnd:     {of: RestoreEnd{}, Name: "restore end", Level: 1, Lane: LaneInternal, Restore: true},

	KindSetJoinToken:    {of: SetJoinToken{}, Name: "set join token", Level: 1, Lane: LaneInternal},
	KindDeleteJoinToken: {of: DeleteJoinToken{}, Name: "delete join token", Level: 1, Lane: LaneInternal},
	KindUseJoinToken:    {of: UseJoinToken{}, Name: "use join token", Level: 1, Lane: LaneInternal},

	KindSetDefaults: {of: SetDefaults{}, Name: "set defaults", Level: 1, Lane: LaneSettle},

	KindForget: {of: Forget{}, Name: "forget", Level: 1, Lane: LaneInternal},

	KindSetPageSecret: {of: SetPageSecret{}, Name: "set page secret", Level: 1, Lane: LaneInternal},
}

// Row returns the kind's row, or nil if the kind is unknown.
func (k Kind) Row() *Row {
	if int(k) >= len(table) || table[k].of == nil {
		return nil
	}
	return &table[k]
}

// KindOf returns the command's kind.
func KindOf(c Command) Kind { return c.kind() }

// RowOf returns the row of the command's kind.
func RowOf(c Command) *Row { return c.kind().Row() }

// String returns the kind's name for messages, or its number if it is unknown.
func (k Kind) String() string {
	if row := k.Row(); row != nil {
		return row.Name
	}
	return "type " + strconv.Itoa(int(k))
}

// isOp reports whether a batch may hold commands of the kind.
func (k Kind) isOp() bool {
	row := k.Row()
	return row != nil && row.Op
}

// LevelOf returns the feature level that the cluster must have reached before the command
// may be proposed. Below it, a node may not know the command or one of its fields, and
// would stop at it.
func LevelOf(c Command) uint32 {
	level := RowOf(c).Level
	if l, ok := c.(later); ok {
		level = max(level, l.needs())
	}
	return level
}

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
	Type     string // the task type whose settings it changes, "" = none
	// DeadLetter is the type to which copies of that type's tasks will go, "" = none.
	DeadLetter string
	Schedule   string    // the schedule, "" = none
	Ops        []Command // of a batch; each has an About

	// Changes is the number of tasks that it may change if none of them is a step or has steps.
	Changes int
}

// AboutOf returns what the command names and how much it may change. Its slices are the command's
// own.
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

// TouchesSteps reports whether the command may change more tasks than About.Changes says: steps of
// its task, or of its task's parent.
func TouchesSteps(c Command) bool { return RowOf(c).Family }
