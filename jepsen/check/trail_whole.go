package check

import (
	"maps"
	"slices"

	"github.com/claimq/claimq/jepsen/history"
)

// checkWhole checks that the events of the parts of a call that is one step are of
// one entry, whatever was answered.
func (c *trailChecker) checkWhole() {
	alone := c.askedAlone()
	for _, ops := range c.findWhole().calls {
		var first *history.Told
		for _, i := range ops {
			asked := c.h.Ops[i]
			if k := c.keys[asked.Key]; asked.TaskID == 0 && k != nil && len(k.seen) > 0 {
				asked.TaskID = slices.Max(slices.Collect(maps.Keys(k.seen)))
			}
			k, ok := eventOf(&asked)
			e := c.told[k]
			switch {
			case !ok || e == nil: // other rules say what is missing
			case (asked.Outcome == history.Unknown || asked.Repeated) && alone[k]: // it may be of another call that asked for the same by itself
			case first == nil:
				first = e
			case first.Index != e.Index:
				c.Violate(RuleTrailWhole, e.TaskID, []int{i}, "one step, and the trail has it in two entries: %s and %s", tell(first), tell(e))
			}
		}
	}
}

// askedAlone returns what calls that are no step with others asked for, and were not
// refused.
func (c *trailChecker) askedAlone() map[end]bool {
	alone := map[end]bool{}
	for i := range c.h.Ops {
		if op := &c.h.Ops[i]; !op.Whole && op.Outcome != history.Failed {
			if k, ok := eventOf(op); ok {
				alone[k] = true
			}
		}
	}
	return alone
}
