package check

import (
	"fmt"
	"testing"

	"github.com/claimq/claimq/jepsen/history"
)

// What a correct queue answers passes, whatever was lost on the way.
func TestCheck_goodHistories(t *testing.T) {
	t.Parallel()
	for seed := range int64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			h := goodHistory(seed, 3000)
			if h.UnknownCount() < 50 {
				t.Fatalf("got %d unknown outcomes, want at least 50: the test is of little worth", h.UnknownCount())
			}
			expired := 0
			for i := range h.Ops {
				if h.Ops[i].Kind == history.Complete && h.Ops[i].Outcome == history.Failed {
					expired++
				}
			}
			if expired < 10 {
				t.Fatalf("got %d late completes, want at least 10", expired)
			}
			if report := judged(h, true); !report.OK() {
				t.Errorf("seed %d:\n%s", seed, report)
			}
		})
	}
}

// One lie planted anywhere in a good history is found.
func TestCheck_oneLie(t *testing.T) {
	t.Parallel()
	kinds := func(kind history.Kind) func(*history.Op) bool {
		return func(op *history.Op) bool {
			return op.Kind == kind && op.Outcome == history.OK && op.TaskID != 0 && !op.Repeated
		}
	}
	for _, lie := range []struct {
		name string
		of   func(*history.Op) bool
		tell func(h *history.History, op *history.Op)
	}{
		{"a lost task", kinds(history.Submit), func(h *history.History, op *history.Op) {
			h.Final.Tasks = append(h.Final.Tasks[:op.TaskID-1], h.Final.Tasks[op.TaskID:]...)
		}},
		{"a lost complete", kinds(history.Complete), func(h *history.History, op *history.Op) {
			h.Final.Tasks[op.TaskID-1].Status = "failed"
		}},
		{"a claim of a later day", kinds(history.Claim), func(h *history.History, op *history.Op) {
			again := *op
			again.Process, again.RequestID = 99, "lie"
			again.Call, again.Return = h.Final.Call-2, h.Final.Call-1
			h.Ops = append(h.Ops, again)
		}},
		{"a claim with an older token", kinds(history.Claim), func(h *history.History, op *history.Op) {
			again := *op
			again.Process, again.RequestID, again.Token, again.Seen = 99, "lie", 1<<40, nil
			again.Call, again.Return = 1, 2
			h.Ops = append(h.Ops, again)
		}},
		{"a complete that nobody may make", kinds(history.Complete), func(h *history.History, op *history.Op) {
			again := *op
			again.Process, again.Token = 99, op.Token-1
			h.Ops = append(h.Ops, again)
		}},
		{"a failure that was no failure", kinds(history.Fail), func(_ *history.History, op *history.Op) {
			op.Kind, op.Result = history.Complete, "1"
		}},
	} {
		t.Run(lie.name, func(t *testing.T) {
			t.Parallel()
			for seed := range int64(10) {
				h := goodHistory(100+seed, 2000)
				var about []int
				for i := range h.Ops {
					if lie.of(&h.Ops[i]) {
						about = append(about, i)
					}
				}
				lie.tell(h, &h.Ops[about[int(seed*37)%len(about)]])
				if report := judged(h, true); report.OK() {
					t.Errorf("seed %d: the history passes", 100+seed)
				}
			}
		})
	}
}

// 500,000 calls are checked in well below a minute.
func BenchmarkCheck(b *testing.B) {
	h := goodHistory(1, 500_000)
	b.ReportMetric(float64(len(h.Ops)), "ops/history")
	for b.Loop() {
		if report := judged(h, true); !report.OK() {
			b.Fatal(report)
		}
	}
}
