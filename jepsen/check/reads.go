package check

import (
	"time"

	"github.com/claimq/claimq/jepsen/history"
)

// Statuses that the rules ask for.
const (
	statusPending   = "pending"
	statusClaimed   = "claimed"
	statusCompleted = "completed"
	statusFailed    = "failed"
	statusCancelled = "cancelled"
	statusBlocked   = "blocked"
	statusRunning   = "running"
)

// hasEnded reports whether the status is an end.
func hasEnded(status string) bool {
	return status == statusCompleted || status == statusFailed || status == statusCancelled
}

// waitMargin is how much sooner than it was asked to a node may look again at the task
// whose end a read waits for: times are rounded where a wait is passed on.
const waitMargin = 5 * int64(time.Millisecond)

// checkWaits checks that a read that waits for the end of the task does.
func (c *checker) checkWaits(t *task) {
	for _, i := range t.ops {
		op := &c.h.Ops[i]
		if waitedOut(op) && op.Return-op.Call < op.WaitMS*int64(time.Millisecond)-waitMargin {
			c.violate(RuleWait, t.id, []int{i}, "task %d was shown as %s after %v by a read that waits %d ms for its end",
				t.id, op.Seen.Status, time.Duration(op.Return-op.Call), op.WaitMS)
		}
	}
}

// waitedOut reports whether op is a read that waited and shows a task that has not
// ended.
func waitedOut(op *history.Op) bool {
	return op.Kind == history.Get && op.Outcome == history.OK && !op.Stale && op.WaitMS > 0 && !hasEnded(op.Seen.Status)
}

// earliest returns when op took effect at the earliest. A read that waits and shows a
// task that has not ended looked at it when its time was over.
func earliest(op *history.Op) int64 {
	if !waitedOut(op) {
		return op.Call
	}
	return max(op.Call, min(op.Return, op.Call+op.WaitMS*int64(time.Millisecond)-waitMargin))
}
