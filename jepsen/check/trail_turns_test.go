package check

import (
	"testing"

	"github.com/claimq/claimq/jepsen/history"
)

// Of two shares of a fair type that both have tasks, neither gets more claims by priority than their weights give; where
// that is not certain there is no violation.
func TestTrail_turns(t *testing.T) {
	t.Parallel()
	fair := history.Op{Kind: history.SetType, TaskType: "t", Fair: true, Outcome: history.OK, Index: 1}
	weighs := history.Op{Kind: history.SetShare, TaskType: "t", ShareKey: "a", Weight: 300, Outcome: history.OK, Index: 1}
	bounds := history.Op{Kind: history.SetShare, TaskType: "t", ShareKey: "b", MaxClaimed: 1, Outcome: history.OK, Index: 1}
	byID := func(op *history.Op) { op.Kind = history.ClaimTask }
	byAge := func(op *history.Op) { op.SortBy = "created_at" }
	lost := func(op *history.Op) { op.Outcome, op.Token, op.TaskID = history.Unknown, 0, 0 }
	held := func(op *history.Op) { op.Kind, op.Repeated = history.ClaimTask, true }
	for _, tt := range []struct {
		name   string
		sets   []history.Op
		claims string // share keys; big letters are of another priority
		with   func(*history.Op)
		which  []int // the claims that with changes
		rule   Rule  // "" = it passes
	}{
		{"in turns", []history.Op{fair}, "abababab", nil, nil, ""},
		{"one ahead", []history.Op{fair}, "aabba", nil, nil, ""},
		{"three in a row", []history.Op{fair}, "aaa", nil, nil, RuleFair},
		{"three more over a longer stretch", []history.Op{fair}, "abaabaa", nil, nil, RuleFair},
		{"not fair", []history.Op{{Kind: history.SetType, TaskType: "t", Outcome: history.OK, Index: 1}}, "aaaaaa", nil, nil, ""},
		{"more weight", []history.Op{fair, weighs}, "aaaab", nil, nil, ""},
		{"more than its weight", []history.Op{fair, weighs}, "aaaaa", nil, nil, RuleFair},
		{"as much as without weight", []history.Op{fair, weighs}, "abababab", nil, nil, RuleFair},
		{"by id", []history.Op{fair}, "aaaaaa", byID, []int{0, 1, 2, 3}, ""},
		{"by age", []history.Op{fair}, "aaaaaa", byAge, []int{0, 1, 2, 3}, ""},
		{"one without an answer", []history.Op{fair}, "aaaa", lost, []int{1}, ""},
		{"one whose holder asked again by id", []history.Op{fair}, "aaaa", held, []int{1}, ""},
		{"another is at its limit", []history.Op{fair, bounds}, "baaaaa", nil, nil, ""},
		{"more than its limit", []history.Op{fair, bounds}, "bab", nil, nil, RuleLimit},
		{"two priorities", []history.Op{fair}, "aAaAbBbB", nil, nil, ""},
		{"the other priority is not in turns", []history.Op{fair}, "abAAA", nil, nil, RuleFair},
		{"the other has no more tasks", []history.Op{fair}, "bababababababaaaaa", nil, nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := &history.History{Ops: tt.sets}
			free := map[rune][]uint64{}
			id, at := uint64(0), uint64(1)
			for _, share := range "abAB" {
				for range map[rune]int{'a': 14, 'b': 7, 'A': 7, 'B': 7}[share] {
					id, at = id+1, at+1
					op := history.Op{Kind: history.Submit, Outcome: history.OK, TaskID: id, Created: true, TaskType: "t", ShareKey: string(share | 0x20), Index: at}
					if share < 'a' {
						op.Priority = 1
					}
					free[share] = append(free[share], id)
					h.Ops = append(h.Ops, op)
					h.Trail = append(h.Trail, history.Told{Index: at, Kind: "submitted", TaskID: id})
				}
			}
			for n, share := range tt.claims {
				at++
				task, token := free[share][0], uint64(n+1)
				free[share] = free[share][1:]
				op := history.Op{Process: n, Kind: history.Claim, Outcome: history.OK, TaskID: task, Token: token, Worker: "w", RequestID: string(rune('A' + n)), Index: at}
				for _, which := range tt.which {
					if n == which {
						tt.with(&op)
					}
				}
				h.Ops = append(h.Ops, op)
				h.Trail = append(h.Trail, history.Told{Index: at, Kind: "claimed", TaskID: task, Token: token, Worker: "w"})
			}
			r := trailOf(h)
			if tt.rule == "" && !r.OK() || tt.rule != "" && (r.OK() || r.Violations[0].Rule != tt.rule) {
				t.Errorf("got %+v, want %q", r.Violations, tt.rule)
			}
		})
	}
}
