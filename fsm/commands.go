package fsm

import (
	"strconv"

	"github.com/claimq/claimq/fsm/record"
)

// Command is one mutation as the log holds it. Exactly the types of the table below
// implement it, each in a file of its own noun: what it means, what it names, and how
// it is written. A command owns its byte slices: nobody changes them after it was
// proposed or decoded.
type Command interface {
	// kind is the command's type number in the log. Numbers are never reused.
	kind() kind
	// about says what the command names and how much it may change.
	about() About
	// appendBody appends the command's body: the message of fsm.proto that has its
	// name.
	appendBody(b []byte) []byte
	// decode returns the command whose body the reader has, and nothing of the one
	// that it is called on. The command shares no memory with the body.
	decode(r fieldReader) (Command, error)
	// applyTo applies the command. Errors: as undoAll's.
	applyTo(m *Machine) (Result, error)
}

// A command that is judged may be answered without being applied (Machine.Judge).
type judged interface {
	// judge returns acts true if the command, applied at now, would change anything,
	// else its answer, which has the state's own task. It reads only.
	judge(m *Machine, now record.Stamp) (result Result, acts bool)
}

// A command with fields that appeared later than it did.
type later interface {
	// needs returns the feature level that knows all fields that are set; 0 if the
	// command's own does.
	needs() uint32
}

// kind is the type number of a command.
type kind uint8

// Kinds 1 to 127 change tasks, 128 and above change the cluster's own records.
const (
	kindSubmit    kind = 1
	kindClaimNext kind = 2
	kindClaimTask kind = 3
	kindComplete  kind = 4
	kindFail      kind = 5
	kindExtend    kind = 6
	kindRelease   kind = 7
	kindRetry     kind = 8
	kindDelete    kind = 9
	kindExpire    kind = 10
	kindCancel    kind = 11
	kindPatch     kind = 12
	kindSetType   kind = 13
	kindEvict     kind = 14
	kindBatch     kind = 15
	kindAct       kind = 16

	kindClaimFinalization   kind = 17
	kindExtendFinalization  kind = 18
	kindReleaseFinalization kind = 19
	kindFinalize            kind = 20

	kindTick       kind = 128
	kindCheckpoint kind = 129
	kindSetNode    kind = 130
	kindRemoveNode kind = 131
	kindSetLevel   kind = 132

	kindSetSchedule    kind = 133
	kindDeleteSchedule kind = 134
	kindRunSchedules   kind = 135
	kindSetTrail       kind = 136
	kindTell           kind = 137
	kindRestoreBegin   kind = 138
	kindRestoreChunk   kind = 139
	kindRestoreEnd     kind = 140

	kindSetJoinToken    kind = 141
	kindDeleteJoinToken kind = 142
	kindUseJoinToken    kind = 143

	kindForget kind = 144

	kindSetPageSecret kind = 145
	kindSetDefaults   kind = 146
)

// row is what is known of all commands of one kind.
type row struct {
	of    Command // the type's zero value
	name  string  // in messages
	level uint32  // the feature level at which the kind appears
	lane  Lane
	// op: a batch may hold it.
	op bool
	// family: with its task it may change those that are steps with it, or of it.
	family bool
	// steps: its answer also has the steps of the one task that it is about.
	steps bool
	// restore: it may come between the chunks of a restore; any other ends that.
	restore bool
}

// commands is the one table of commands, by kind. A kind that is not in it is unknown.
// Nothing in package fsm, and little beyond, knows a command but by its row and by its
// own methods: who adds one writes its file, its kind and row, its message in fsm.proto
// and its line in docs/formats.md.
var commands = [...]row{
	kindSubmit:    {of: Submit{}, name: "submit", level: 1, lane: LaneSubmit, op: true, steps: true},
	kindClaimNext: {of: ClaimNext{}, name: "claim next", level: 1, lane: LaneClaim, op: true},
	kindClaimTask: {of: ClaimTask{}, name: "claim task", level: 1, lane: LaneClaim},
	kindComplete:  {of: Complete{}, name: "complete", level: 1, lane: LaneSettle, op: true, family: true},
	kindFail:      {of: Fail{}, name: "fail", level: 1, lane: LaneSettle, op: true, family: true},
	kindExtend:    {of: Extend{}, name: "extend", level: 1, lane: LaneSettle, op: true},
	kindRelease:   {of: Release{}, name: "release", level: 1, lane: LaneSettle, op: true, family: true},
	kindRetry:     {of: Retry{}, name: "retry", level: 1, lane: LaneSettle, op: true, family: true, steps: true},
	kindDelete:    {of: Delete{}, name: "delete", level: 1, lane: LaneSettle, op: true, family: true},
	kindExpire:    {of: Expire{}, name: "expire", level: 1, lane: LaneExpire},
	kindCancel:    {of: Cancel{}, name: "cancel", level: record.LevelLife, lane: LaneSettle, op: true, family: true, steps: true},
	kindPatch:     {of: Patch{}, name: "patch", level: record.LevelLife, lane: LaneSettle, steps: true},
	kindSetType:   {of: SetType{}, name: "set type", level: record.LevelLife, lane: LaneSettle},
	kindEvict:     {of: Evict{}, name: "evict", level: record.LevelLife, lane: LaneInternal},
	kindBatch:     {of: Batch{}, name: "batch", level: record.LevelLife, lane: LaneSettle, family: true}, // it may settle
	kindAct:       {of: Act{}, name: "act", level: record.LevelSight, lane: LaneSettle},

	kindClaimFinalization:   {of: ClaimFinalization{}, name: "claim finalization", level: record.LevelSteps, lane: LaneSettle},
	kindExtendFinalization:  {of: ExtendFinalization{}, name: "extend finalization", level: record.LevelSteps, lane: LaneSettle},
	kindReleaseFinalization: {of: ReleaseFinalization{}, name: "release finalization", level: record.LevelSteps, lane: LaneSettle},
	kindFinalize:            {of: Finalize{}, name: "finalize", level: record.LevelSteps, lane: LaneSettle},

	kindTick:       {of: Tick{}, name: "tick", level: 1, lane: LaneInternal},
	kindCheckpoint: {of: Checkpoint{}, name: "checkpoint", level: 1, lane: LaneInternal},
	kindSetNode:    {of: SetNode{}, name: "set node", level: 1, lane: LaneInternal},
	kindRemoveNode: {of: RemoveNode{}, name: "remove node", level: 1, lane: LaneInternal},
	kindSetLevel:   {of: SetLevel{}, name: "set level", level: 1, lane: LaneInternal},

	kindSetSchedule:    {of: SetSchedule{}, name: "set schedule", level: record.LevelSight, lane: LaneSettle},
	kindDeleteSchedule: {of: DeleteSchedule{}, name: "delete schedule", level: record.LevelSight, lane: LaneSettle},
	kindRunSchedules:   {of: RunSchedules{}, name: "run schedules", level: record.LevelSight, lane: LaneInternal},
	kindSetTrail:       {of: SetTrail{}, name: "set trail", level: record.LevelSight, lane: LaneInternal},
	kindTell:           {of: Tell{}, name: "tell", level: record.LevelActs, lane: LaneInternal},
	kindRestoreBegin:   {of: RestoreBegin{}, name: "restore begin", level: record.LevelActs, lane: LaneInternal, restore: true},
	kindRestoreChunk:   {of: RestoreChunk{}, name: "restore chunk", level: record.LevelActs, lane: LaneInternal, restore: true},
	kindRestoreEnd:     {of: RestoreEnd{}, name: "restore end", level: record.LevelActs, lane: LaneInternal, restore: true},

	kindSetJoinToken:    {of: SetJoinToken{}, name: "set join token", level: record.LevelActs, lane: LaneInternal},
	kindDeleteJoinToken: {of: DeleteJoinToken{}, name: "delete join token", level: record.LevelActs, lane: LaneInternal},
	kindUseJoinToken:    {of: UseJoinToken{}, name: "use join token", level: record.LevelActs, lane: LaneInternal},

	kindSetDefaults: {of: SetDefaults{}, name: "set defaults", level: record.LevelActs, lane: LaneSettle},

	kindForget: {of: Forget{}, name: "forget", level: record.LevelLife, lane: LaneInternal},

	kindSetPageSecret: {of: SetPageSecret{}, name: "set page secret", level: record.LevelActs, lane: LaneInternal},
}

// row returns the kind's row, nil if there is none.
func (k kind) row() *row {
	if int(k) >= len(commands) || commands[k].of == nil {
		return nil
	}
	return &commands[k]
}

// String returns the kind's name in messages, its number if it has none.
func (k kind) String() string {
	if row := k.row(); row != nil {
		return row.name
	}
	return "type " + strconv.Itoa(int(k))
}

// isOp reports whether a batch may hold commands of the kind.
func (k kind) isOp() bool {
	row := k.row()
	return row != nil && row.op
}

// LevelOf returns the feature level that the cluster must have reached before
// the command may be proposed: below it, there may be a node that does not
// know the command, or a field of it, and would stop at it.
func LevelOf(c Command) uint32 {
	level := c.kind().row().level
	if l, ok := c.(later); ok {
		level = max(level, l.needs())
	}
	return level
}

// needsBy returns the feature level that knows who gave the command, 0 if nobody is
// named.
func needsBy(by string) uint32 {
	if by != "" {
		return record.LevelActs
	}
	return 0
}
