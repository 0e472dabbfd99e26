package check

import (
	"time"

	"github.com/claimq/claimq/jepsen/history"
)

// waitMargin is how much sooner than it was asked to a node may look again at the task
// whose end a read waits for: times are rounded where a wait is passed on.
const waitMargin = 5 * int64(time.Millisecond)

// checkWaits checks that a read that waits for the end of the task does.
func (c *checker) checkWaits(t *task) {
	for i, op := range c.of(t, history.Get) {
		if op.Return < earliest(op) {
			c.Violate(RuleWait, t.id, []int{i}, "task %d was shown as %s after %v by a read that waits %d ms for its end",
				t.id, op.Seen.Status, time.Duration(op.Return-op.Call), op.WaitMS)
		}
	}
}

// earliest returns when op took effect at the earliest. A read that waits and shows a
// task that has not ended looked at it when its time was over.
func earliest(op *history.Op) int64 {
	if op.Kind != history.Get || op.Outcome != history.OK || op.Stale || op.WaitMS == 0 || hasEnded(op.Seen.Status) {
		return op.Call
	}
	return max(op.Call, op.Call+op.WaitMS*int64(time.Millisecond)-waitMargin)
}
