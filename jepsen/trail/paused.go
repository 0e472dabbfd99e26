package trail

import (
	"strings"

	"github.com/claimq/claimq/jepsen/history"
)

// checkPaused checks that between a pause that was acknowledged and the next change
// of the type no claim took one of its tasks, but by id.
func (c *checker) checkPaused() {
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
	kinds, byID := c.kinds()
	since := map[string]*history.Told{} // types that are paused
	for i := range c.h.Trail {
		e := &c.h.Trail[i]
		switch e.Kind {
		case "type_changed":
			kind, _, _ := strings.Cut(e.Message, " ") // whose key it was may follow
			delete(since, kind)
			if pauses[e.Index] == kind {
				since[kind] = e
				c.report.Pauses++
			}
		case "claimed":
			if p := since[kinds[e.TaskID]]; p != nil && !byID[e.TaskID] {
				c.violate(RulePaused, e.TaskID, nil, "the type %s was paused by %s, and no change of it comes before %s", kinds[e.TaskID], describe(p), describe(e))
			}
		}
	}
}

// kinds returns the types of the tasks, as far as answers and the state at the end
// tell, and which tasks somebody may have claimed by id.
func (c *checker) kinds() (kinds map[uint64]string, byID map[uint64]bool) {
	kinds, byID = map[uint64]string{}, map[uint64]bool{}
	for i := range c.h.Ops {
		op := &c.h.Ops[i]
		switch {
		case op.Kind == history.Submit && op.Created:
			kinds[op.TaskID] = op.TaskType
		case op.Seen != nil && op.Seen.Type != "":
			kinds[op.TaskID] = op.Seen.Type
		}
		if op.Kind == history.ClaimTask && op.Outcome != history.Failed {
			byID[op.TaskID] = true
		}
	}
	if c.h.Final != nil {
		for i := range c.h.Final.Tasks {
			kinds[c.h.Final.Tasks[i].ID] = c.h.Final.Tasks[i].Type
		}
	}
	return kinds, byID
}
