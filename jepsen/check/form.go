package check

import "github.com/claimq/claimq/jepsen/history"

// numberMax is the bound of ids and tokens: 2^53, which JSON readers keep.
const numberMax = 1 << 53

// checkForm checks that the ops say what their kind needs, and that a process
// made one call after the other. (Ops of one call share their times.)
func (c *checker) checkForm(h *history.History) {
	last := map[int]int{} // process → its latest op by call
	for i := range h.Ops {
		op := &h.Ops[i]
		if problem := malformed(op); problem != "" {
			c.violate(RuleMalformed, op.TaskID, nil, "op %d: %s: %s", i, problem, Describe(op))
		}
		if before, ok := last[op.Process]; ok {
			b := &h.Ops[before]
			if op.Call != b.Call && op.Call < b.Return {
				c.violate(RuleMalformed, op.TaskID, nil, "op %d: process %d called before its call before had returned: %s", i, op.Process, Describe(op))
			}
		}
		last[op.Process] = i
	}
}

// malformed says what is wrong with the op itself, "" if nothing.
func malformed(op *history.Op) string {
	switch {
	case op.Return < op.Call:
		return "it returned before it was called"
	case op.TaskID >= numberMax || op.Token >= numberMax:
		return "a number of 2^53 or more"
	case op.Outcome != history.OK && op.Outcome != history.Failed && op.Outcome != history.Unknown:
		return "no outcome"
	case op.Outcome != history.OK:
		return needsTask(op)
	}
	switch op.Kind {
	case history.Submit:
		if op.TaskID == 0 {
			return "a submit without an id"
		}
	case history.Claim:
		if (op.TaskID == 0) != (op.Token == 0) {
			return "a claim with only one of id and token"
		}
	case history.ClaimTask:
		if op.Token == 0 {
			return "a claim without a token"
		}
	case history.Get:
		if op.Seen == nil {
			return "a read that saw nothing"
		}
	case history.ClaimFinalization:
		if op.Done != (op.Token != 0) {
			return "a claim of a finalization with only one of a claim and a token"
		}
	}
	return needsTask(op)
}

// needsTask says what a call by id lacks, "" if nothing.
func needsTask(op *history.Op) string {
	switch op.Kind {
	case history.Submit, history.Claim, history.List, history.SetType, history.Act:
		return ""
	case history.Complete, history.Fail, history.Extend, history.Release:
		if op.Token == 0 {
			return "a settling call without a token"
		}
	case history.ClaimTask, history.Retry, history.Delete, history.Cancel, history.Get,
		history.ClaimFinalization, history.ExtendFinalization, history.ReleaseFinalization, history.Finalize:
	default:
		return "an unknown kind"
	}
	if op.TaskID == 0 {
		return "a call by id without an id"
	}
	return ""
}
