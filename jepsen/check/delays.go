package check

import (
	"cmp"
	"slices"
	"strings"
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
func (c *checker) checkDelays() {
	if clocksSet(c.h) {
		return
	}
	for _, id := range c.ids {
		t := c.tasks[id]
		delays := c.delays(t)
		if len(delays) == 0 || t.parent || c.mayHave(t, history.Retry) {
			continue
		}
		slices.SortFunc(delays, func(a, b delay) int { return cmp.Compare(a.token, b.token) })
		claims := slices.Clone(t.claims)
		slices.SortFunc(claims, func(a, b claim) int { return cmp.Compare(a.token, b.token) })
		var longest delay // of those before the claim
		for _, cl := range claims {
			for len(delays) > 0 && delays[0].token < cl.token {
				if delays[0].until > longest.until {
					longest = delays[0]
				}
				delays = delays[1:]
			}
			if cl.ret < longest.until {
				c.violate(RuleDelay, id, []int{longest.op, cl.op}, "task %d was claimed by %s, and is not to be claimed before %s", id, clock(cl.ret), clock(longest.until))
			}
		}
	}
}

// clocksSet reports whether a clock of a node was tampered with.
func clocksSet(h *history.History) bool {
	return slices.ContainsFunc(h.Events, func(e history.Event) bool {
		return e.Kind == history.Injected && strings.Contains(e.Fault, "clock-")
	})
}

// delays returns the delays of the task that were acknowledged.
func (c *checker) delays(t *task) []delay {
	var all []delay
	if s := t.submit; s != nil && s.acked >= 0 && t.parentID == 0 && c.h.Ops[s.acked].DelayMS > 0 {
		all = append(all, delay{until: delayEnd(s.call, c.h.Ops[s.acked].DelayMS), op: s.acked})
	}
	released := map[uint64]*delay{}
	acked := map[uint64]bool{}
	for _, i := range t.ops {
		op := &c.h.Ops[i]
		if op.Kind != history.Release || op.Outcome == history.Failed {
			continue
		}
		acked[op.Token] = acked[op.Token] || op.Outcome == history.OK
		until := delayEnd(op.Call, op.DelayMS)
		if d := released[op.Token]; d == nil || until < d.until {
			released[op.Token] = &delay{op.Token, until, i}
		}
	}
	for token, d := range released {
		if acked[token] && c.h.Ops[d.op].DelayMS > 0 {
			all = append(all, *d)
		}
	}
	return all
}

// delayEnd returns when a delay that was asked for at call ends at the earliest.
func delayEnd(call, delayMS int64) int64 {
	return call + delayMS*int64(time.Millisecond) - delayMargin
}
