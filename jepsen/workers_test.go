package main

import (
	"testing"
	"time"

	"github.com/claimq/claimq/jepsen/plants"
	"github.com/claimq/claimq/jepsen/workers"
)

// The short form of `make test-workers`: worker processes are stopped past their leases,
// cut off, killed and asked to end, and the leader is killed at their calls; no two workers
// ever believe to hold the same task, and nothing is lost.
func TestWorkers(t *testing.T) {
	honest, err := plants.WorkerByName("")
	if err != nil {
		t.Fatal(err)
	}
	worker, err := honest.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	report, err := workers.Run(t.Context(), workers.Config{
		Binary: binary(), Worker: worker, Dir: t.TempDir(), Nodes: 3, Workers: 5, Rate: 12, Time: 6 * time.Second, Lease: 500 * time.Millisecond,
		Seed: 3, Out: t.Output(),
	})
	t.Log(report)
	if err != nil {
		t.Fatal(err)
	}
	if !report.OK() {
		t.Error("the run does not pass")
	}
}
