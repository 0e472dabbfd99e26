package fsm

import (
	"slices"
	"strconv"
)

// kinds is the one table of command types: how messages call it, and the
// feature level at which it appears. A type that is not in it is unknown.
var kinds = [...]struct {
	name  string
	level uint32
}{
	kindSubmit:    {"submit", 1},
	kindClaimNext: {"claim next", 1},
	kindClaimTask: {"claim task", 1},
	kindComplete:  {"complete", 1},
	kindFail:      {"fail", 1},
	kindExtend:    {"extend", 1},
	kindRelease:   {"release", 1},
	kindRetry:     {"retry", 1},
	kindDelete:    {"delete", 1},
	kindExpire:    {"expire", 1},
	kindCancel:    {"cancel", 2},
	kindPatch:     {"patch", 2},
	kindSetType:   {"set type", 2},
	kindEvict:     {"evict", 2},
	kindBatch:     {"batch", 2},
	kindAct:       {"act", 3},

	kindClaimFinalization:   {"claim finalization", 4},
	kindExtendFinalization:  {"extend finalization", 4},
	kindReleaseFinalization: {"release finalization", 4},
	kindFinalize:            {"finalize", 4},

	kindTick:       {"tick", 1},
	kindCheckpoint: {"checkpoint", 1},
	kindSetNode:    {"set node", 1},
	kindRemoveNode: {"remove node", 1},
	kindSetLevel:   {"set level", 1},

	kindSetSchedule:    {"set schedule", 3},
	kindDeleteSchedule: {"delete schedule", 3},
	kindRunSchedules:   {"run schedules", 3},
	kindSetTrail:       {"set trail", 3},
	kindTell:           {"tell", 5},
	kindRestoreBegin:   {"restore begin", 5},
	kindRestoreChunk:   {"restore chunk", 5},
	kindRestoreEnd:     {"restore end", 5},

	kindSetJoinToken:    {"set join token", 5},
	kindDeleteJoinToken: {"delete join token", 5},
	kindUseJoinToken:    {"use join token", 5},
}

// String returns the kind's name in messages, its number if it has none.
func (k kind) String() string {
	if int(k) >= len(kinds) || kinds[k].name == "" {
		return "type " + strconv.Itoa(int(k))
	}
	return kinds[k].name
}

// levelLife is the feature level of schedules, retention, limits, groups and
// batches of tasks: below it Apply does nothing of that.
const levelLife = 2

// levelSight is the feature level of the trail, schedules of their own and
// actions on many tasks: below it Apply keeps no trail.
const levelSight = 3

// levelSteps is the feature level of parents with steps and of their
// finalization.
const levelSteps = 4

// levelActs is the feature level at which the trail tells of operators' acts that
// change nothing in the state, and who did what, and at which a restore goes through
// the log, and that of join tokens.
const levelActs = 5

// LevelOf returns the feature level that the cluster must have reached before
// the command may be proposed: below it, there may be a node that does not
// know the command, or a field of it, and would stop at it.
func LevelOf(c Command) uint32 {
	level := kinds[c.kind()].level
	if usesLife(c) {
		level = max(level, levelLife)
	}
	if usesSight(c) {
		level = max(level, levelSight)
	}
	if usesSteps(c) {
		level = max(level, levelSteps)
	}
	if usesActs(c) {
		level = max(level, levelActs)
	}
	if batch, ok := c.(Batch); ok {
		for _, op := range batch.Ops {
			level = max(level, LevelOf(op))
		}
	}
	return level
}

// usesLife reports whether the command sets a field that appeared at levelLife.
func usesLife(c Command) bool {
	switch c := c.(type) {
	case Submit:
		return slices.ContainsFunc(c.Tasks, func(t NewTask) bool { return t.usesLife() })
	case ClaimNext:
		return c.SortBy == SortRandom || c.MoreAttempts != 0
	case Complete:
		return len(c.Submit) > 0 || c.Claim != nil
	case Fail:
		return c.RetryIn || c.RetryInMS != 0 || c.Permanent
	case Extend:
		return c.Progress != nil
	case Release:
		return c.DelayMS != 0
	}
	return false
}

func (t *NewTask) usesLife() bool {
	return t.RunAt != 0 || t.DelayMS != 0 || t.ExpiresAt != 0 || t.Backoff != nil || t.RetentionMS != 0 ||
		len(t.Labels) > 0 || t.Group != "" || t.UniqueActive || t.KeyOfType
}

// usesSight reports whether the command sets a field that appeared at
// levelSight.
func usesSight(c Command) bool {
	traced := func(t NewTask) bool { return t.Traceparent != "" }
	switch c := c.(type) {
	case Submit:
		return slices.ContainsFunc(c.Tasks, traced)
	case Complete:
		return slices.ContainsFunc(c.Submit, traced)
	}
	return false
}

// usesSteps reports whether the command sets a field that appeared at
// levelSteps.
func usesSteps(c Command) bool {
	isParent := func(t NewTask) bool { return t.Parent != nil }
	switch c := c.(type) {
	case Submit:
		return slices.ContainsFunc(c.Tasks, isParent)
	case Complete:
		return slices.ContainsFunc(c.Submit, isParent)
	}
	return false
}

// usesActs reports whether the command sets a field that appeared at levelActs. A
// SetLevel to that level may: who does not know the field stops at it anyway.
func usesActs(c Command) bool {
	switch c := c.(type) {
	case SetType:
		return c.By != ""
	case SetSchedule:
		return c.By != ""
	case DeleteSchedule:
		return c.By != ""
	case SetLevel:
		return c.By != "" && c.Level < levelActs
	case SetNode:
		return c.Node.Nonvoter
	}
	return false
}
