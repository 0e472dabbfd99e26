package presence

import (
	"testing"
	"time"

	"github.com/claimq/claimq/api/bound"
	"github.com/claimq/claimq/api/callbody"
)

// TestBoard_NoteAllocatesNothing checks what recording costs a claim.
func TestBoard_NoteAllocatesNothing(t *testing.T) {
	var limits bound.Limits
	limits.SetDefaults()
	b := New(time.Now())
	claim, bad := callbody.DecodeClaim([]byte(`{"worker_id":"w","task_types":["a","b"]}`), &limits)
	if bad != nil {
		t.Fatal(bad)
	}
	cmd := claim.Command()
	extend, bad := callbody.DecodeBatch([]byte(`{"ops":[{"op":"extend","id":1,"worker_id":"w"},{"op":"complete","id":2,"worker_id":"w","claim":{}}]}`), &limits)
	if bad != nil {
		t.Fatal(bad)
	}
	batch := extend.Command()
	b.Note(cmd, time.Now())
	b.Note(batch, time.Now())
	if n := testing.AllocsPerRun(100, func() {
		b.Note(cmd, time.Now())
		b.NoteClaim(claim.Cmd.WorkerID, claim.Cmd.Types, time.Now())
	}); n != 0 {
		t.Errorf("a claim: %v allocations", n)
	}
}
