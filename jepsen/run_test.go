package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/claimq/claimq/jepsen/history"
	"github.com/claimq/claimq/jepsen/judge"
	"github.com/claimq/claimq/jepsen/runner"
)

// Two short runs of what `go run ./jepsen run` does for an hour or a night: one
// that any user can make, and one with networks and disks of the nodes' own,
// which needs root. Each passes, and its stored history gets the same verdict.
func TestRun(t *testing.T) {
	for _, c := range []struct {
		name   string
		faults []string
		seed   int64
	}{
		{"kills and pauses", []string{"kill-leader", "pause-leader", "kill-all"}, 1},
		{"power losses and partitions", []string{"power-all", "power-leader-torn", "partition-leader"}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := runner.Possible(c.faults); err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			verdict, err := oneRun(t.Context(), runner.Config{
				Binary: binary(), Nodes: 3, Time: 15 * time.Second, Faults: c.faults, Seed: c.seed, Rate: 300, Out: t.Output(),
			}, dir)
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
			again := judge.Judge(h)
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
