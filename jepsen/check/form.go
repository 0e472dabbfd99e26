package check

import (
	"slices"

	"github.com/claimq/claimq/jepsen/history"
)

// numberMax is the bound of ids and tokens: 2^53, which JSON readers keep.
const numberMax = 1 << 53

// checkForm checks that the ops say what their kind needs, and that a process
// made one call after the other. (Ops of one call share their times.)
func (c *checker) checkForm(ops []history.Op) {
	last := map[int]*history.Op{} // of the process, by call
	for i := range ops {
		op := &ops[i]
		problem := malformed(op)
		if b := last[op.Process]; b != nil && op.Call != b.Call && op.Call < b.Return {
			problem = "its process called before its call before had returned"
		}
		if problem != "" {
			c.Violate(RuleMalformed, op.TaskID, nil, "op %d: %s: %s", i, problem, Describe(op))
		}
		last[op.Process] = op
	}
}

// malformed says what is wrong with the op itself, "" if nothing.
func malformed(op *history.Op) string {
	answered := op.Outcome == history.OK
	for _, wrong := range []struct {
		is  bool
		how string
	}{
		{op.Return < op.Call, "it returned before it was called"},
		{op.TaskID >= numberMax || op.Token >= numberMax, "a number of 2^53 or more"},
		{!answered && op.Outcome != history.Failed && op.Outcome != history.Unknown, "no outcome"},
		{!slices.Contains(kinds, op.Kind), "an unknown kind"},
		{slices.Contains(byID, op.Kind) && op.TaskID == 0, "a call by id without an id"},
		{slices.Contains(settles, op.Kind) && op.Token == 0, "a settling call without a token"},
		{op.Kind == history.Submit && op.Key == "", "a submit without a key"},
		{(op.Kind == history.Claim || op.Kind == history.ClaimTask) && op.RequestID == "", "a claim without a claim_request_id"},
		{answered && op.Kind == history.Submit && op.TaskID == 0, "a submit without an id"},
		{answered && op.Kind == history.Claim && (op.TaskID == 0) != (op.Token == 0), "a claim with only one of id and token"},
		{answered && op.Kind == history.ClaimTask && op.Token == 0, "a claim without a token"},
		{answered && op.Kind == history.Get && op.Seen == nil, "a read that saw nothing"},
		{answered && op.Kind == history.ClaimFinalization && op.Done != (op.Token != 0), "a claim of a finalization with only one of a claim and a token"},
	} {
		if wrong.is {
			return wrong.how
		}
	}
	return ""
}

// The kinds of calls: those that settle a claim, those that name a task, and all.
var (
	settles = []history.Kind{history.Complete, history.Fail, history.Extend, history.Release}
	byID    = append([]history.Kind{
		history.ClaimTask, history.Retry, history.Delete, history.Cancel, history.Get,
		history.ClaimFinalization, history.ExtendFinalization, history.ReleaseFinalization, history.Finalize,
	}, settles...)
	kinds = append([]history.Kind{history.Submit, history.Claim, history.List, history.SetType, history.Act}, byID...)
)
