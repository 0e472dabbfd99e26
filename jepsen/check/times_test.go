package check

import (
	"slices"
	"testing"

	"github.com/claimq/claimq/jepsen/history"
)

func delayed(ms int64) step { return func(o *history.Op) { o.DelayMS = ms } }

// A task is not claimed before its time, unless a retry may have ended the delay or
// clocks were set.
func TestCheckDelays(t *testing.T) {
	t.Parallel()
	made, later := submitted(0, 1, 1, "a"), submitted(0, 1, 1, "a", delayed(1000))
	first := claimed(2, 3, 1, 7, "w", "q")
	release := func(call int64, steps ...step) history.Op {
		return settle(history.Release, call, call+1, 1, 7, "w", append([]step{delayed(1000)}, steps...)...)
	}
	retry := op(history.Retry, 100, 101, func(o *history.Op) { o.TaskID, o.Repeated = 1, true })
	for _, tt := range []struct {
		name  string
		ops   []history.Op
		fault string
		want  []Rule
	}{
		{"claimed too early", []history.Op{later, claimed(10, 800, 1, 7, "w", "q")}, "", []Rule{RuleDelay}},
		{"claimed in time", []history.Op{later, claimed(10, 950, 1, 7, "w", "q")}, "", nil},
		{"the submit was repeated", []history.Op{submitted(0, 1, 0, "a", delayed(1000), unknown), submitted(500, 501, 1, "a", delayed(1000), repeated), claimed(10, 950, 1, 7, "w", "q")}, "", nil},
		{"the submit was repeated, claimed too early", []history.Op{submitted(0, 1, 0, "a", delayed(1000), unknown), submitted(500, 501, 1, "a", delayed(1000), repeated), claimed(10, 800, 1, 7, "w", "q")}, "", []Rule{RuleDelay}},
		{"no delay", []history.Op{made, claimed(10, 20, 1, 7, "w", "q")}, "", nil},
		{"retried", []history.Op{later, retry, claimed(110, 120, 1, 7, "w", "q")}, "", nil},
		{"a clock was set", []history.Op{later, claimed(10, 20, 1, 7, "w", "q")}, "kill-one+clock-ahead", nil},
		{"something else was done", []history.Op{later, claimed(10, 20, 1, 7, "w", "q")}, "kill-one", []Rule{RuleDelay}},
		{"claimed too early after a release", []history.Op{made, first, release(10), claimed(20, 800, 1, 8, "v", "q2")}, "", []Rule{RuleDelay}},
		{"the second claim after it", []history.Op{made, first, release(10), claimed(20, 950, 1, 8, "v", "q2"), settle(history.Fail, 960, 961, 1, 8, "v"), claimed(970, 980, 1, 9, "v", "q3")}, "", nil},
		{"the release was repeated", []history.Op{made, first, release(10, unknown), release(500, repeated), claimed(20, 950, 1, 8, "v", "q2")}, "", nil},
		{"nobody knows of the release", []history.Op{made, first, release(10, unknown), claimed(20, 30, 1, 8, "v", "q2")}, "", nil},
		{"a refused release", []history.Op{made, first, release(10, refused("stale_claim")), claimed(20, 30, 1, 8, "v", "q2")}, "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := run(tt.ops...)
			h.Events = []history.Event{{Kind: history.Injected, Fault: tt.fault}}
			r := judged(h, false)
			var got []Rule
			for _, v := range r.Violations {
				got = append(got, v.Rule)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("found %v, want %v\n%v", got, tt.want, r)
			}
		})
	}
}
