package main

import (
	"testing"
	"time"

	"github.com/claimq/claimq/jepsen/operations"
)

// TestUpgrade is the short form of `make test-upgrade`: three nodes are upgraded to a version that
// knows one feature level more, back, and up again, one by one under load.
func TestUpgrade(t *testing.T) {
	report, err := operations.Upgrade(t.Context(), operations.Config{
		Binary: binary(), Dir: t.TempDir(), Clients: 36, Rate: 300, Pause: 500 * time.Millisecond, Seed: 1, Out: t.Output(),
	})
	t.Log(report)
	if err != nil {
		t.Fatal(err)
	}
	if !report.OK() {
		t.Error("the run does not pass")
	}
}
