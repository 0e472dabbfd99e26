package main

import (
	"testing"
)

// The short form of `make test-fuzz`: no request of thousands that are broken in
// some way brings a node down, gets an answer that the contract does not have, or
// leaves something behind.
func TestFuzz(t *testing.T) {
	report, err := fuzzNodesOf(t.Context(), fuzzConfig{binary: binary(), dir: t.TempDir(), requests: 4000, senders: 8, seed: 1, secure: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(report)
	if !report.OK() {
		t.Error("the answers do not pass")
	}
	if report.PassedOn == 0 {
		t.Error("no request was done that came over a peer port: the nodes take none of them")
	}
	for _, status := range []int{200, 201, 400, 404, 405, 409} {
		if report.Statuses[status] == 0 {
			t.Errorf("no request was answered with %d: they are all alike", status)
		}
	}
}
