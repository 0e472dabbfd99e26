package fsm_test

import (
	"flag"
	"fmt"
	"testing"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/jepsen/sim"
)

var (
	firstSeed = flag.Uint64("simulated.first", 1, "the first seed of TestMachine_MatchesModelSimulated")
	seedCount = flag.Uint64("simulated.seeds", 0, "how many; 0: 400, or 100 with -short")
)

// TestMachine_MatchesModelSimulated is TestMachine_MatchesModel for logs of the simulator:
// of clients that repeat what they heard no answer to, of leaders that go and come.
func TestMachine_MatchesModelSimulated(t *testing.T) {
	t.Parallel()
	count, commands := *seedCount, 0
	switch {
	case count != 0:
	case testing.Short():
		count = 100
	default:
		count = 400
	}
	for seed := *firstSeed; seed < *firstSeed+count && !t.Failed(); seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			both := fsm.NewCompared(t, seed)
			report := sim.Run(sim.Config{Seed: seed, Steps: 100, OnEntry: both.Entry})
			if report.Failure != "" {
				t.Fatal(report.Failure)
			}
			commands += report.Commands
		})
	}
	t.Logf("compared %d commands", commands)
}
