package main

import (
	"testing"
	"time"

	"github.com/claimq/claimq/jepsen/memory"
)

// The short form of `make test-memory`: the rows of the calls that take most.
func TestMemory(t *testing.T) {
	cfg := memory.Config{Out: t.Output(), Conns: 400, Hold: time.Second, Calls: []string{"run_batch", "claim_tasks"}}
	report, err := memoryOf(t.Context(), binary(), t.TempDir(), 1, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(report)
	if !report.OK() || len(report.Rows) < 5 {
		t.Error("it does not pass")
	}
}
