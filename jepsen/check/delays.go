package check

import (
	"maps"
	"slices"
	"time"

	"github.com/claimq/claimq/jepsen/history"
)

// delayMargin is how far the calendars of the nodes and the recorder's clock may
// be apart while nobody sets a clock.
const delayMargin = 100 * int64(time.Millisecond)

// delay is until when certainly no claim with a higher token takes the task.
type delay struct {
	token uint64 // of the claim that was released, 0 = of the submit
	until int64
	op    int
}

// checkDelays checks that no claim was answered before the delay of the submit or
// of a release before it can have passed. It goes by the calendar, so it says
// nothing of a run in which clocks were set, nor of tasks that somebody may have
// retried: that ends a delay.
func (c *checker) checkDelays(t *task) {
	if c.clocksSet || t.parent || c.mayHave(t, history.Retry) {
		return
	}
	for _, d := range c.delays(t) {
		for i := range t.claims {
			if cl := &t.claims[i]; cl.token > d.token && cl.ret < d.until {
				c.Violate(RuleDelay, t.id, []int{d.op, cl.op}, "task %d was claimed by %s, and is not to be claimed before %s", t.id, clock(cl.ret), clock(d.until))
			}
		}
	}
}

// delays returns the delays of the task that were acknowledged.
func (c *checker) delays(t *task) (all []delay) {
	if s := t.submit; s != nil && s.acked >= 0 && t.parentID == 0 && c.ops[s.acked].DelayMS > 0 {
		all = append(all, delay{until: delayEnd(s.call, c.ops[s.acked].DelayMS), op: s.acked})
	}
	released := map[uint64]delay{}
	acked := map[uint64]bool{}
	for i, op := range c.of(t, history.Release) {
		acked[op.Token] = acked[op.Token] || op.Outcome == history.OK
		until := delayEnd(op.Call, op.DelayMS)
		if d, ok := released[op.Token]; !ok || until < d.until {
			released[op.Token] = delay{op.Token, until, i}
		}
	}
	for _, token := range slices.Sorted(maps.Keys(released)) {
		if d := released[token]; acked[token] && c.ops[d.op].DelayMS > 0 {
			all = append(all, d)
		}
	}
	return all
}

// delayEnd returns when a delay that was asked for at call ends at the earliest.
func delayEnd(call, delayMS int64) int64 {
	return call + delayMS*int64(time.Millisecond) - delayMargin
}
