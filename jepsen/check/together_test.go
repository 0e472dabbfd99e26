package check

import (
	"slices"
	"testing"

	"github.com/claimq/claimq/jepsen/history"
)

func inGroup(kind, group string) step {
	return func(o *history.Op) { o.TaskType, o.Group = kind, group }
}

func setMax(call, ret int64, kind string, most int32, steps ...step) history.Op {
	return op(history.SetType, call, ret, append([]step{func(o *history.Op) { o.TaskType, o.MaxClaimed = kind, most }}, steps...)...)
}

// Claims of one group must not live together, nor more of a type than it allows;
// what only may have lived is no violation.
func TestCheckTogether(t *testing.T) {
	t.Parallel()
	two := func(first, second step, more ...history.Op) []history.Op {
		return append([]history.Op{
			submitted(0, 1, 1, "a", first), submitted(2, 3, 2, "b", second),
			claimed(10, 11, 1, 1, "w", "q1", lease(1000)),
		}, more...)
	}
	late := claimed(20, 21, 2, 2, "v", "q2", lease(1000))
	for _, tt := range []struct {
		name string
		ops  []history.Op
		want []Rule
	}{
		{"one group", two(inGroup("t", "g"), inGroup("t", "g"), late), []Rule{RuleGroup}},
		{"groups of two types", two(inGroup("t", "g"), inGroup("u", "g"), late), nil},
		{"no group", two(inGroup("t", ""), inGroup("t", ""), late), nil},
		{"the first was completed", two(inGroup("t", "g"), inGroup("t", "g"), settle(history.Complete, 12, 13, 1, 1, "w"), late), nil},
		{"the first may have been released", two(inGroup("t", "g"), inGroup("t", "g"), settle(history.Release, 12, 13, 1, 1, "w", unknown), late), nil},
		{"the first's lease may have ended", two(inGroup("t", "g"), inGroup("t", "g"), claimed(1500, 1501, 2, 2, "v", "q2", lease(1000))), nil},
		{"the first was extended", two(inGroup("t", "g"), inGroup("t", "g"),
			settle(history.Extend, 900, 901, 1, 1, "w", lease(1000)), claimed(1500, 1501, 2, 2, "v", "q2", lease(1000))), []Rule{RuleGroup}},
		{"the second is not answered", two(inGroup("t", "g"), inGroup("t", "g"),
			op(history.Claim, 20, 21, func(o *history.Op) { o.Worker, o.RequestID = "v", "q2" }, unknown)), nil},
		{"more than the limit", two(inGroup("t", ""), inGroup("t", ""), setMax(5, 6, "t", 1), late), []Rule{RuleLimit}},
		{"as many as the limit", two(inGroup("t", ""), inGroup("t", ""), setMax(5, 6, "t", 2), late), nil},
		{"another type's limit", two(inGroup("t", ""), inGroup("t", ""), setMax(5, 6, "u", 1), late), nil},
		{"the first came before the limit", two(inGroup("t", ""), inGroup("t", ""), setMax(5, 12, "t", 1), late), nil},
		{"nobody knows of the limit", two(inGroup("t", ""), inGroup("t", ""), setMax(5, 6, "t", 1, unknown), late), nil},
		{"a refused limit", two(inGroup("t", ""), inGroup("t", ""), setMax(5, 6, "t", 1, refused("no_leader")), late), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := Check(run(tt.ops...), Options{})
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
