package sim

import (
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// Two thousand short seeds; with -short, a quarter.
func TestRun(t *testing.T) {
	t.Parallel()
	seeds := 2000
	if testing.Short() {
		seeds /= 4
	}
	total := RunSeeds(t.Context(), Config{Seed: 1, Steps: 60}, uint64(seeds), runtime.GOMAXPROCS(0))
	if total.Failure != "" {
		t.Fatalf("seed %d of %d steps fails: %s", total.Failed, 60, total.Failure)
	}
	if total.Seeds != seeds || total.Commands < 20*seeds {
		t.Errorf("%d seeds committed %d commands, want %d and at least 20 each: they prove little", total.Seeds, total.Commands, seeds)
	}
}

// The same config gives the same run, traced or not; another seed gives another one.
func TestRun_replays(t *testing.T) {
	t.Parallel()
	seen := map[[16]byte]uint64{}
	for seed := uint64(1); seed <= 50; seed++ {
		cfg := Config{Seed: seed, Steps: 100}
		first := Run(cfg)
		cfg.Trace = io.Discard
		if again := Run(cfg); again != first {
			t.Fatalf("seed %d: %+v, then %+v", seed, first, again)
		}
		if other, ok := seen[first.Hash]; ok {
			t.Errorf("seeds %d and %d have one hash", seed, other)
		}
		seen[first.Hash] = seed
	}
}

// A run contains every kind of step and of fault, and its traces are equal line by line.
func TestRun_traces(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for seed := uint64(1); seed <= 100; seed++ {
		var first, second strings.Builder
		Run(Config{Seed: seed, Steps: 100, Trace: &first})
		Run(Config{Seed: seed, Steps: 100, Trace: &second})
		if first.String() != second.String() {
			t.Fatalf("seed %d: two traces differ", seed)
		}
		all.WriteString(first.String())
	}
	for _, what := range []string{
		"crashes", "steps down", "is cut off", "is committed all the same", "stands still", "is restored", "is written",
		"wall clock is ahead", "the outcome is unknown", "try 3", "next slot is in",
		"expire{", "Expired=", "Repeated=true", "SameRequest=true", "Gone=true", "Evicted=", "Acted=", "Atomic=true",
		"Claim=claim next{", "SortBy=2", "MoreAttempts=", "Group=", "RunAt=", "ExpiresAt=", "Backoff=", "RetentionMS=", "UniqueActive=true",
		"KeyOfType=true", "MaxClaimed=", "RateLimit=", "Status=scheduled", "Status=blocked",
		"set schedule{", "delete schedule{", "run schedules{", "Skip=true", "OverlapAllow=true", "Cron=*", "act{", "set trail{", "set defaults{",
		"ByClaim=true", "Continue=true", "Outcome=1 ", "Outcome=2 ", "Outcome=3 ", "Outcome=4 ", "Outcome=5 ", "Outcome=6 ",
		"extend finalization{", "release finalization{", "Done=true", "AlreadyFinalized=true", "State=evaluating_results", "State=failed", "State=cancelled",
		"stale_claim", "wrong_worker", "invalid_request", "task_not_terminal", "max_attempts_reached", "task_not_claimable", "task_cancelled",
		"schedule_not_found", "steps_unfinished", "task_already_claimed",
	} {
		if !strings.Contains(all.String(), what) {
			t.Errorf("no run has %q", what)
		}
	}
}

// A failing run is shrunk to steps that fail by themselves, and none of which can be left
// out.
func TestShrink(t *testing.T) {
	t.Parallel()
	// Two steps are needed to fail here.
	fails := func(only []int) bool { return slices.Contains(only, 17) && slices.Contains(only, 61) }
	all := make([]int, 100)
	for i := range all {
		all[i] = i
	}
	if got := shrink(all, fails); !slices.Equal(got, []int{17, 61}) {
		t.Errorf("shrunk to %v, want [17 61]", got)
	}
}

// Without any steps the cluster does nothing wrong.
func TestRun_only(t *testing.T) {
	t.Parallel()
	none := Run(Config{Seed: 1, Steps: 100, Only: []int{}})
	half := make([]int, 50)
	for i := range half {
		half[i] = i
	}
	some, all := Run(Config{Seed: 1, Steps: 100, Only: half}), Run(Config{Seed: 1, Steps: 100})
	if none.Failure != "" || some.Failure != "" || none.Commands >= some.Commands || some.Commands >= all.Commands {
		t.Errorf("without steps %+v, with half of them %+v, with all %+v", none, some, all)
	}
}

func TestMain_usage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--seeds", "0"}, {"--steps", "0"}, {"--only", "x"}, {"--only", "1,y"}, {"--only", "1-3"}, {"x"}} {
		if err := Main(t.Context(), args, io.Discard); err == nil {
			t.Errorf("%v is taken", args)
		}
	}
	var out strings.Builder
	if err := Main(t.Context(), []string{"--seeds", "3", "--steps", "10"}, &out); err != nil || !strings.Contains(out.String(), "3 seeds, ") {
		t.Errorf("%v: %s", err, out.String())
	}
	out.Reset()
	if err := Main(t.Context(), []string{"--seeds", "1", "--only", "13,2"}, &out); err != nil || !strings.Contains(out.String(), "n1 leads, term 1") {
		t.Errorf("two steps are not told: %v: %s", err, out.String())
	}
}
