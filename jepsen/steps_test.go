package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/claimq/claimq/jepsen/procs"
)

// The short form of `make test-steps`: 300 parents of 5 steps, the leader killed
// twice under load and all nodes at once; each ends once, and rightly.
func TestSteps(t *testing.T) {
	cfg := stepsConfig{
		binary: binary(), dir: t.TempDir(), parents: 300, steps: 5, kills: 2, producers: 2, workers: 6, processors: 8, seed: 1, killAll: true,
		limit: 5 * time.Minute, out: t.Output(),
	}
	report, err := putThrough(t.Context(), cfg)
	if err != nil {
		t.Fatalf("%v\n%s", err, report)
	}
	t.Log(report)
	if !report.OK() {
		t.Error("not every parent ended once, and rightly")
	}
}

// Finalizers contend for parents; one ends each, none is refused, and the figures
// are told as JSON. How long it takes is not this test's.
func TestFinalizers(t *testing.T) {
	cluster, err := procs.Start(deadline(t), procs.Config{Binary: binary(), Dir: t.TempDir(), Nodes: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	cfg := finalizersConfig{parents: 30, finalizers: 20, direct: 10, steps: 2, out: t.Output()}
	result, err := contend(t.Context(), cluster, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(result)
	for _, v := range result.Violations {
		if !strings.HasPrefix(v, "claims take") {
			t.Error(v)
		}
	}
	b, err := json.Marshal(result)
	if err != nil || !bytes.Contains(b, []byte(`"finalized":40,"told_what_was_done":760,`)) {
		t.Errorf("as JSON: %s, %v", b, err)
	}
}
