package check

import (
	"strings"

	"github.com/claimq/claimq/jepsen/history"
)

// checkPaused checks that between a pause that was acknowledged and the next change
// of the type no claim took one of its tasks, but by id.
func (c *trailChecker) checkPaused() {
	pauses := map[uint64]string{} // by entry: the type that it pauses
	for i := range c.h.Ops {
		op := &c.h.Ops[i]
		if op.Kind == history.SetType && op.Outcome == history.OK && op.Paused != nil && *op.Paused && op.Index > 0 {
			pauses[op.Index] = op.TaskType
		}
	}
	if len(pauses) == 0 {
		return
	}
	since := map[string]*history.Told{} // types that are paused
	for i := range c.h.Trail {
		e := &c.h.Trail[i]
		switch e.Kind {
		case "type_changed":
			kind, _, _ := strings.Cut(e.Message, " ") // whose key it was may follow
			delete(since, kind)
			if pauses[e.Index] == kind {
				since[kind] = e
				c.pauses++
			}
		case "claimed":
			kind := c.kindOf(e.TaskID)
			if p := since[kind]; p != nil && !c.mayHave(c.tasks[e.TaskID], history.ClaimTask) {
				c.Violate(RuleTrailPaused, e.TaskID, nil, "the type %s was paused by %s, and no change of it comes before %s", kind, tell(p), tell(e))
			}
		}
	}
}

// kindOf returns the type of the task, "" if no answer tells.
func (x *index) kindOf(id uint64) string {
	if t := x.tasks[id]; t != nil {
		return x.placeOf(t).kind
	}
	return ""
}
