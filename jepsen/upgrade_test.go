package main

import (
	"testing"
	"time"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/jepsen/operations"
)

// TestUpgrade is the short form of `make test-upgrade`: three nodes of the
// version before this feature level go up to this one and back, and there again,
// one by one under load.
func TestUpgrade(t *testing.T) {
	err := upgradeFrom(t.Context(), operations.Config{
		Binary: binary(), Dir: t.TempDir(), Rate: 300, Pause: 500 * time.Millisecond, Seed: 1, Out: t.Output(),
	}, fsm.FeatureLevel-1)
	if err != nil {
		t.Error(err)
	}
}
