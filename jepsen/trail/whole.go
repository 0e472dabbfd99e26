package trail

import "github.com/claimq/claimq/jepsen/history"

// checkWhole checks that the events of the parts of a call that is one step are of
// one entry, whatever was answered.
func (c *checker) checkWhole() {
	type made struct {
		process int
		call    int64
	}
	ids, alone := c.idsOfKeys(), c.askedAlone()
	first := map[made]*history.Told{}
	for i := range c.h.Ops {
		op := &c.h.Ops[i]
		if !op.Whole || op.Outcome == history.Failed {
			continue
		}
		asked := *op
		if asked.TaskID == 0 {
			asked.TaskID = ids[op.Key]
		}
		k, ok := key(&asked)
		e := c.ends[k]
		if !ok || e == nil {
			continue // check says what is missing
		}
		if (op.Outcome == history.Unknown || op.Repeated) && alone[k] {
			continue // it may be of another call that asked for the same by itself
		}
		call := made{op.Process, op.Call}
		if f := first[call]; f == nil {
			first[call] = e
		} else if f.Index != e.Index {
			c.violate(RuleWhole, e.TaskID, []int{i}, "one step, and the trail has it in two entries: %s and %s", describe(f), describe(e))
		}
	}
}

// askedAlone returns what calls that are no step with others asked for, and were not
// refused.
func (c *checker) askedAlone() map[end]bool {
	alone := map[end]bool{}
	for i := range c.h.Ops {
		if op := &c.h.Ops[i]; !op.Whole && op.Outcome != history.Failed {
			if k, ok := key(op); ok {
				alone[k] = true
			}
		}
	}
	return alone
}

// idsOfKeys returns the task of each key that was submitted in a step with others,
// as far as an answer or the state at the end tells.
func (c *checker) idsOfKeys() map[string]uint64 {
	ids := map[string]uint64{}
	for i := range c.h.Ops {
		op := &c.h.Ops[i]
		switch {
		case op.Kind == history.Submit && op.TaskID != 0:
			ids[op.Key] = op.TaskID
		case op.Seen != nil:
			ids[op.Seen.Key] = op.TaskID
		}
	}
	if c.h.Final != nil {
		for i := range c.h.Final.Tasks {
			t := &c.h.Final.Tasks[i]
			ids[t.Key] = t.ID
		}
	}
	delete(ids, "")
	return ids
}
