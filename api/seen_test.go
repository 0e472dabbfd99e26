package api

import (
	"fmt"
	"testing"
	"time"

	"github.com/claimq/claimq/api/callbody"
)

func TestLastSeen(t *testing.T) {
	t.Parallel()
	l := newLastSeen()
	if at := l.last("a"); at != 0 {
		t.Errorf("never seen: %d", at)
	}
	l.note("a", 5)
	l.note("b", 7)
	l.note("a", 6)
	l.note("a", 4) // a request that was slow
	if a, b := l.last("a"), l.last("b"); a != 6 || b != 7 {
		t.Errorf("a %d, b %d", a, b)
	}
	if seen := l.all(); len(seen) != 2 || seen["a"] != 6 || seen["b"] != 7 {
		t.Errorf("all: %v", seen)
	}
}

// TestLastSeen_bound checks that names are forgotten past the bound, and those
// first that were not seen for longest.
func TestLastSeen_bound(t *testing.T) {
	t.Parallel()
	l := newLastSeen()
	const names = 3 * seenNamesMax
	for i := range names {
		l.note(fmt.Sprint("name ", i), int64(i+1))
		l.note("always", int64(i+1))
	}
	if seen := l.all(); len(seen) > seenNamesMax || len(seen) < seenNamesMax/2 {
		t.Errorf("%d names are remembered, the bound is %d", len(seen), seenNamesMax)
	}
	if l.last("always") != names {
		t.Error("the one that is always seen was forgotten")
	}
	for i := names - seenNamesMax/4; i < names; i++ {
		if at := l.last(fmt.Sprint("name ", i)); at != int64(i+1) {
			t.Fatalf("name %d, one of the latest, was seen at %d", i, at)
		}
	}
	for i := range names / 3 {
		if at := l.last(fmt.Sprint("name ", i)); at != 0 {
			t.Fatalf("name %d is remembered, of %d", i, names)
		}
	}
}

// TestServer_NoteAllocatesNothing checks what a claim pays for being remembered.
func TestServer_NoteAllocatesNothing(t *testing.T) {
	s, _ := setup(t)
	claim, bad := callbody.DecodeClaim([]byte(`{"worker_id":"w","task_types":["a","b"]}`), &s.cfg.Limits)
	if bad != nil {
		t.Fatal(bad)
	}
	cmd := claim.Command()
	extend, bad := callbody.DecodeBatch([]byte(`{"ops":[{"op":"extend","id":1,"worker_id":"w"},{"op":"complete","id":2,"worker_id":"w","claim":{}}]}`), &s.cfg.Limits)
	if bad != nil {
		t.Fatal(bad)
	}
	batch := extend.Command()
	s.note(cmd, time.Now())
	s.note(batch, time.Now())
	if n := testing.AllocsPerRun(100, func() {
		s.note(cmd, time.Now())
		s.noteClaim(claim.Cmd.WorkerID, claim.Cmd.Types, s.clock(time.Now()))
	}); n != 0 {
		t.Errorf("a claim: %v allocations", n)
	}
}
