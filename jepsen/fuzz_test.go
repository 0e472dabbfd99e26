package main

import (
	"testing"
	"time"

	"github.com/claimq/claimq/jepsen/fuzz"
)

// The short form of `make test-fuzz`: none of thousands of broken requests ends a node,
// gets an answer that the contract does not allow, or leaves something behind; and during
// hundreds of connections that do next to nothing, a caller with a key is answered.
func TestFuzz(t *testing.T) {
	report, err := fuzzNodesOf(t.Context(), binary(), t.TempDir(), fuzz.Config{Requests: 1500, Senders: 8, Seed: 1, Foes: 400, Hold: 200 * time.Millisecond}, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(report)
	if !report.OK() {
		t.Error("the answers do not pass")
	}
	for _, s := range report.Sieges {
		if s.Foes < 100 || s.Calls == 0 {
			t.Errorf("beside %s: %+v", s.Name, s)
		}
	}
	if len(report.Sieges) < 8 {
		t.Errorf("there are %d sieges", len(report.Sieges))
	}
	if report.PassedOn == 0 {
		t.Error("no request was done that came over a peer port: the nodes take none of them")
	}
	for _, status := range []int{200, 400, 404, 405, 409} {
		if report.Statuses[status] == 0 {
			t.Errorf("no request was answered with %d: they are all alike", status)
		}
	}
}
