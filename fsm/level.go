package fsm

import "strconv"

// kinds is the one table of command types: how messages call it, and the
// feature level at which it appears. A type that is not in it is unknown.
var kinds = [...]struct {
	name  string
	level uint32
}{
	kindSubmit:     {"submit", 1},
	kindClaimNext:  {"claim next", 1},
	kindClaimTask:  {"claim task", 1},
	kindComplete:   {"complete", 1},
	kindFail:       {"fail", 1},
	kindExtend:     {"extend", 1},
	kindRelease:    {"release", 1},
	kindRetry:      {"retry", 1},
	kindDelete:     {"delete", 1},
	kindExpire:     {"expire", 1},
	kindTick:       {"tick", 1},
	kindCheckpoint: {"checkpoint", 1},
	kindSetNode:    {"set node", 1},
	kindRemoveNode: {"remove node", 1},
	kindSetLevel:   {"set level", 1},
}

// String returns the kind's name in messages, its number if it has none.
func (k kind) String() string {
	if int(k) >= len(kinds) || kinds[k].name == "" {
		return "type " + strconv.Itoa(int(k))
	}
	return kinds[k].name
}

// LevelOf returns the feature level that the cluster must have reached before
// the command may be proposed: below it, there may be a node that does not
// know the command and would stop at it.
func LevelOf(c Command) uint32 { return kinds[c.kind()].level }
