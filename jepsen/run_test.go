package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/claimq/claimq/jepsen/check"
	"github.com/claimq/claimq/jepsen/history"
	"github.com/claimq/claimq/jepsen/runner"
)

// runTimeMax bounds the load of a run that ends with its tasks, on a slow machine.
const runTimeMax = 5 * time.Minute

// shortReaders is the number of connections of heavy reads, low because other tests need
// the machine, too.
const shortReaders = 8

// Short runs of what `go -C jepsen run . run`, `make test-kill` and `make test-steps` do for
// longer: runs that any user can make, and one in which the nodes have their own networks
// and disks, which needs root. Each passes, and its stored history gets the same verdict.
func TestRun(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  runner.Config
	}{
		{"kills and pauses", runner.Config{Time: 15 * time.Second, Faults: []string{"kill-leader", "pause-leader", "kill-all"}, Seed: 1, Rate: 120}},
		{"power losses and partitions", runner.Config{Time: 15 * time.Second, Faults: []string{"power-all", "power-leader-torn", "partition-leader"}, Seed: 2, Rate: 120}},
		{"killed leaders among tasks", runner.Config{Tasks: 300, Time: runTimeMax, Faults: []string{"kill-leader", "kill-all", "kill-leader"}, Seed: 1, Rate: 2000}},
		{"killed leaders among parents", runner.Config{Tasks: 60, Parents: 100, Steps: 5, Clients: 48, Time: runTimeMax, Faults: []string{"kill-leader"}, Seed: 1, Rate: 2000}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			c.cfg.Binary, c.cfg.Nodes, c.cfg.Out, c.cfg.Shared, c.cfg.Readers = binary(), 3, t.Output(), true, shortReaders
			verdict, err := oneRun(t.Context(), c.cfg, dir)
			if err != nil {
				t.Fatal(err)
			}
			if !verdict.OK() {
				t.Error("the run fails")
			}
			h, err := history.ReadFile(filepath.Join(dir, historyName))
			if err != nil {
				t.Fatal(err)
			}
			submitted := 0
			for i := range h.Ops {
				if op := &h.Ops[i]; op.Created && (c.cfg.Parents < 100 || op.Plan != nil && len(op.Plan.Steps) == c.cfg.Steps) {
					submitted++
				}
			}
			if submitted < c.cfg.Tasks {
				t.Errorf("%d tasks were submitted, of %d that were to be", submitted, c.cfg.Tasks)
			}
			again := check.Judge(h)
			if again.OK() != verdict.OK() {
				t.Errorf("judged again: got %v, want %v", again.OK(), verdict.OK())
			}
			page, err := os.ReadFile(filepath.Join(dir, reportName))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Contains(page, []byte("the run passes")) && verdict.OK() {
				t.Error("the report does not say that the run passes")
			}
		})
	}
}

// A binary that acknowledges writes and drops them does not pass: the test can fail.
func TestRun_noticesADroppedWrite(t *testing.T) {
	verdict, err := oneRun(t.Context(), runner.Config{
		Binary: buildPlanted(t), Nodes: 3, Tasks: 300, Time: runTimeMax, Faults: []string{"kill-leader"}, Seed: 1, Rate: 2000, Out: t.Output(),
	}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if verdict.OK() {
		t.Error("the history passes")
	}
}
