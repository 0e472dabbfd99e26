package check

import (
	"testing"

	"github.com/claimq/claimq/jepsen/history"
)

// The answer to a repeated claim shows the claim's own token, and the
// current task: claimed by somebody else, with one more attempt.
func TestCheck_repeatAfterTheClaimHasEnded(t *testing.T) {
	t.Parallel()
	claimedAnew := func(token uint64) *history.Task {
		return &history.Task{ID: 1, Status: "claimed", Token: token, Attempts: 2}
	}
	h := &history.History{Ops: []history.Op{
		{Process: 1, Kind: history.Submit, Call: 0, Return: 1, Outcome: history.OK, TaskID: 1, Key: "k", Created: true},
		{Process: 2, Kind: history.Claim, Call: 2, Return: 3, Outcome: history.Unknown, RequestID: "a", Worker: "v", LeaseMS: 100},
		{Process: 3, Kind: history.Claim, Call: 200e6, Return: 201e6, Outcome: history.OK, TaskID: 1, Token: 8, RequestID: "b", Worker: "w", LeaseMS: 1000, Seen: claimedAnew(8)},
		{Process: 2, Kind: history.Claim, Call: 210e6, Return: 211e6, Outcome: history.OK, TaskID: 1, Token: 7, RequestID: "a", Worker: "v", LeaseMS: 100, Repeated: true, Seen: claimedAnew(7)},
	}}
	if r := judged(h, false); !r.OK() {
		t.Error(r)
	}
}
