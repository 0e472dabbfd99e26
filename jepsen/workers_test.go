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
	runShort(t, workers.Config{Worker: worker})
}

// The same where the workers are claimq work --serve with a program in Python, whose processes are stopped and
// killed alone, and block their interpreter past their leases. The one in Node is in clients/typescript.
func TestWorkers_served(t *testing.T) {
	t.Parallel()
	runShort(t, workers.Config{Worker: binary(), Served: []string{"work", "--serve", "--processes", "2", "--", "/usr/bin/python3", "workers/served/diary.py"}})
}

// runShort runs workers for a short time.
func runShort(t *testing.T, cfg workers.Config) {
	t.Helper()
	report, err := workers.Run(t.Context(), workers.Config{
		Binary: binary(), Worker: cfg.Worker, Served: cfg.Served, Dir: t.TempDir(), Nodes: 3, Workers: 5, Rate: 12, Time: 6 * time.Second, Lease: 500 * time.Millisecond,
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
