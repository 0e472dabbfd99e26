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
)

// hasEnded reports whether the status is an end.
func hasEnded(status string) bool {
	return status == statusCompleted || status == statusFailed || status == statusCancelled
}

// checkReads checks that no linearizable read showed a state older than what
// had been acknowledged when it was called.
func (c *checker) checkReads(t *task) {
	latest := newHighest(t.claims)
	completed := -1 // the complete that returned first
	for _, i := range t.ops {
		op := &c.h.Ops[i]
		if op.Kind == history.Complete && op.Outcome == history.OK && (completed < 0 || op.Return < c.h.Ops[completed].Return) {
			completed = i
		}
	}
	deleted := c.mayBeDeleted(t.id)
	for _, i := range t.ops {
		op := &c.h.Ops[i]
		if op.Kind != history.Get || op.Stale || deleted {
			continue
		}
		if op.Outcome == history.Failed && op.Code == "task_not_found" {
			if s := t.submit; s != nil && s.acked >= 0 && s.ret < op.Call {
				c.violate(RuleStaleRead, t.id, []int{s.acked, i}, "stale read: task %d was not found after its submit had been acknowledged", t.id)
			}
			continue
		}
		if op.Outcome != history.OK {
			continue
		}
		if op.WaitMS > 0 && !hasEnded(op.Seen.Status) && op.Return-op.Call < op.WaitMS*int64(time.Millisecond)-waitMargin {
			c.violate(RuleWait, t.id, []int{i}, "task %d was shown as %s after %v by a read that waits %d ms for its end",
				t.id, op.Seen.Status, time.Duration(op.Return-op.Call), op.WaitMS)
		}
		if newer := latest.before(op.Call); newer != nil && op.Seen.Token != 0 && op.Seen.Token < newer.token {
			c.violate(RuleStaleRead, t.id, []int{newer.op, i},
				"stale read: task %d was shown with token %d after token %d had been handed out", t.id, op.Seen.Token, newer.token)
		}
		if completed >= 0 && c.h.Ops[completed].Return < op.Call && op.Seen.Status != statusCompleted {
			c.violate(RuleStaleRead, t.id, []int{completed, i},
				"stale read: task %d was shown as %s after its complete had been acknowledged", t.id, op.Seen.Status)
		}
	}
}
