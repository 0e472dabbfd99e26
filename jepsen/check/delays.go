package check

import (
	"time"

	"github.com/claimq/claimq/jepsen/history"
)

// delayMargin is how far the calendars of the nodes and the recorder's clock may
// be apart while nobody sets a clock.
const delayMargin = 100 * int64(time.Millisecond)

// checkDelays checks that no claim was answered before the delay of the submit or
// of a release before it can have passed, of those that were answered as done by that very
// call. It goes by the calendar, so it says
// nothing of a run in which clocks were set, nor of tasks that somebody may have
// retried: that ends a delay.
func (c *checker) checkDelays(t *task) {
	if c.clocksSet || t.parent || c.mayHave(t, history.Retry) {
		return
	}
	for d, op := range c.of(t, history.Submit, history.Release) {
		if op.DelayMS == 0 || op.Outcome != history.OK || !did(op) {
			continue
		}
		until := op.Call + op.DelayMS*int64(time.Millisecond) - delayMargin
		for i := range t.claims {
			if cl := &t.claims[i]; cl.token > op.Token && cl.ret < until {
				c.Violate(RuleDelay, t.id, []int{d, cl.op}, "task %d was claimed by %s, and is not to be claimed before %s", t.id, clock(cl.ret), clock(until))
			}
		}
	}
}
