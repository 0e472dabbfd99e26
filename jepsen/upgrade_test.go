package main

import (
	"testing"
	"time"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/jepsen/procs"
)

// TestUpgrade is the short form of `make test-upgrade`: three nodes of the
// version before this feature level go up to this one and back, and there again,
// one by one under load.
func TestUpgrade(t *testing.T) {
	level := fsm.FeatureLevel - 1
	old, err := procs.BuildLevel(t.Context(), t.TempDir(), level)
	if err != nil {
		t.Fatal(err)
	}
	result, err := upgrade(t.Context(), upgradeConfig{
		Old: old, New: binary(), Level: level, Dir: t.TempDir(), Rate: 100, Rest: 500 * time.Millisecond, Seed: 1, Out: t.Output(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(result)
	if !result.OK() {
		t.Error("the upgrade was seen, or the history does not pass")
	}
}
