package fsm

import (
	"fmt"
	"testing"
	"time"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// BenchmarkClaimShares compares a claim from a type whose tasks have many share keys, two tasks
// each, with one from a type with as many tasks without share keys: with no settings ("keyed"),
// if shares take turns ("fair"), and with a limit that none reaches ("limited"). The rounds
// alternate; "ratio" compares their medians.
func BenchmarkClaimShares(b *testing.B) {
	for _, shares := range []int{10_000, 100_000} {
		plain := newShareBench(b, shares, false)
		for name, settings := range map[string]record.TypeSettings{
			"keyed": {}, "fair": {Fair: true}, "limited": {MaxClaimedPerKey: 1_000_000},
		} {
			b.Run(fmt.Sprintf("shares=%d/%s", shares, name), func(b *testing.B) {
				keyed := newShareBench(b, shares, true)
				keyed.apply(b, command.SetType{Type: "mail", Set: record.TypeFieldsAll, Settings: settings})
				c := command.ClaimNext{WorkerID: "worker-1", Types: []string{"mail"}, Limit: 1}
				var few, many []time.Duration
				for range b.N {
					few = append(few, plain.timeRound(b, c))
					many = append(many, keyed.timeRound(b, c))
				}
				reportRatio(b, few, many)
			})
		}
	}
}

// newShareBench returns a state with two tasks for each share, with share keys or without.
func newShareBench(b *testing.B, shares int, keyed bool) *benchState {
	b.Helper()
	s := &benchState{m: New()}
	s.apply(b, command.SetLevel{Level: record.FeatureLevel})
	for i := range 2 * shares {
		t := record.NewTask{Type: "mail", Params: []byte(`{"to":"ann"}`)}
		if keyed {
			t.ShareKey = fmt.Sprint("customer-", i%shares)
		}
		s.apply(b, command.Submit{Tasks: []record.NewTask{t}})
	}
	return s
}
