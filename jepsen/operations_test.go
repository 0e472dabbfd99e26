package main

import (
	"testing"
	"time"

	"github.com/claimq/claimq/jepsen/operations"
)

// The short form of `make test-operations`: a cluster grows, shrinks, has a node replaced,
// is restarted node by node, loses all its disks and is restored, under load; nothing
// acknowledged is missing, and no id and no token comes twice.
func TestOperations(t *testing.T) {
	report, err := operations.Run(t.Context(), operations.Config{
		Binary: binary(), Dir: t.TempDir(), Seed: 1, Rate: 200, Pause: 500 * time.Millisecond, Out: t.Output(),
		Patient: true,
	})
	t.Log(report)
	if err != nil {
		t.Fatal(err)
	}
	if !report.OK() {
		t.Error("the run does not pass")
	}
}
