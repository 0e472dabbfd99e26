package main

import (
	"testing"
)

// The short form of `make test-kill`: the leader is killed three times under
// load, then all nodes at once; nothing acknowledged is missing, and the
// history passes.
func TestKill(t *testing.T) {
	cfg := killConfig{
		Binary: binary(), Dir: t.TempDir(), Tasks: 3000, Kills: 3, Producers: 8, Workers: 20, Seed: 1, KillAll: true, Out: t.Output(),
	}
	result, err := kill(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(result)
	if !result.OK() {
		t.Error("the history does not pass")
	}
	if got := len(result.History.Final.Tasks); got != cfg.Tasks {
		t.Errorf("tasks at the end: got %d, want %d", got, cfg.Tasks)
	}
	if result.Report.Unknown == 0 {
		t.Error("no unknown outcome was recorded: the kills hit nobody")
	}
}

// A binary that acknowledges writes and drops them does not pass: the test is
// one that can fail.
func TestKill_noticesADroppedWrite(t *testing.T) {
	planted := buildPlanted(t)
	result, err := kill(t.Context(), killConfig{
		Binary: planted, Dir: t.TempDir(), Tasks: 4000, Kills: 1, Producers: 8, Workers: 20, Seed: 1, Out: t.Output(),
	})
	if err != nil {
		t.Fatal(err)
	}
	if result.OK() {
		t.Error("the history passes")
	}
}
