package check

import (
	"time"

	"github.com/claimq/claimq/jepsen/history"
)

// delayMargin is the largest difference between the calendars of the nodes and the recorder's clock
// while no clock is set.
const delayMargin = 100 * int64(time.Millisecond)

// checkDelays checks that no claim was answered before the delay of the submit had passed, counted
// from the first call that may have submitted the task, nor before the delay of a release that was
// acknowledged. It checks nothing in a run that sets clocks, and no task that may have been
// retried.
func (c *checker) checkDelays(t *task) {
	if c.clocksSet || t.parent || c.mayHave(t, history.Retry) {
		return
	}
	for d, op := range c.of(t, history.Submit, history.Release) {
		call := op.Call
		switch {
		case op.DelayMS == 0 || op.Outcome != history.OK:
			continue
		case op.Kind == history.Submit:
			call = t.submit.call
		case !did(op):
			continue
		}
		until := call + op.DelayMS*int64(time.Millisecond) - delayMargin
		for i := range t.claims {
			if cl := &t.claims[i]; cl.token > op.Token && cl.ret < until {
				c.Violate(RuleDelay, t.id, []int{d, cl.op}, "task %d was claimed by %s, and is not to be claimed before %s", t.id, clock(cl.ret), clock(until))
			}
		}
	}
}

// takeTime checks by the trail's calendar, answered or not, that no claim begins before the delay
// of the task's submit or of a release has passed, and that no lease ends early.
func (c *trailChecker) takeTime(t *life, e *history.Told) {
	begun, cl := c.told[end{"claimed", e.TaskID, e.Token}], t.claimOf(e.Token)
	switch {
	case e.Kind == "lease_expired" && begun != nil && cl != nil && !c.clocksSet:
		if least := cl.leaseMS - cl.leaseMS/rateDivisor - delayMargin/int64(time.Millisecond); e.At-begun.At < least {
			c.fails(RuleLeaseEarly, e, "it lasted %d ms of %d", e.At-begun.At, cl.leaseMS)
		}
	case e.Kind == "submitted" && t.submit != nil:
		t.until = e.At + t.submit.delayMS
	case e.Kind == "released":
		t.until = e.At + c.delays[e.Token]
	case e.Kind == "retried":
		t.until = 0
	case e.Kind == "claimed" && e.At < t.until:
		c.fails(RuleDelay, e, "it is not to be claimed for %d ms more", t.until-e.At)
	}
}

// waitMargin bounds how much earlier than asked a node may answer a read that waits for a task's end,
// because forwarding a wait rounds its time.
const waitMargin = 5 * int64(time.Millisecond)

// checkWaits checks that a read that waits for a task's end really waits.
func (c *checker) checkWaits(t *task) {
	for i, op := range c.of(t, history.Get) {
		if op.Return < earliest(op) {
			c.Violate(RuleWait, t.id, []int{i}, "task %d was shown as %s after %v by a read that waits %d ms for its end",
				t.id, op.Seen.Status, time.Duration(op.Return-op.Call), op.WaitMS)
		}
	}
}

// earliest returns the earliest time at which op took effect. A waiting read that shows a task that
// has not ended looked at it when its time was over.
func earliest(op *history.Op) int64 {
	if op.Kind != history.Get || op.Outcome != history.OK || op.Stale || op.WaitMS == 0 || hasEnded(op.Seen.Status) {
		return op.Call
	}
	return max(op.Call, op.Call+op.WaitMS*int64(time.Millisecond)-waitMargin)
}
