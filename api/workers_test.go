package api

import (
	"fmt"
	"testing"
	"time"

	"github.com/claimq/claimq/api/codec"
)

// TestPresence_NoteAllocatesNothing checks what recording costs a claim.
func TestPresence_NoteAllocatesNothing(t *testing.T) {
	var limits codec.Limits
	limits.SetDefaults()
	p := newPresence(time.Now())
	claim, bad := codec.DecodeClaim([]byte(`{"worker_id":"w","task_types":["a","b"]}`), &limits)
	if bad != nil {
		t.Fatal(bad)
	}
	cmd := claim.Command()
	extend, bad := codec.DecodeBatch([]byte(`{"ops":[{"op":"extend","id":1,"worker_id":"w"},{"op":"complete","id":2,"worker_id":"w","claim":{}}]}`), &limits)
	if bad != nil {
		t.Fatal(bad)
	}
	batch := extend.Command()
	p.note(cmd, time.Now())
	p.note(batch, time.Now())
	if n := testing.AllocsPerRun(100, func() {
		p.note(cmd, time.Now())
		p.noteClaim(claim.Cmd.WorkerID, claim.Cmd.Types, time.Now())
	}); n != 0 {
		t.Errorf("a claim: %v allocations", n)
	}
}

func TestTimes(t *testing.T) {
	t.Parallel()
	l := newTimes()
	if at := l.last("a"); at != 0 {
		t.Errorf("never seen: %d", at)
	}
	l.note("a", 5)
	l.note("b", 7)
	l.note("a", 6)
	l.note("a", 4) // a slow request
	if a, b := l.last("a"), l.last("b"); a != 6 || b != 7 {
		t.Errorf("a %d, b %d", a, b)
	}
	if seen := l.all(); len(seen) != 2 || seen["a"] != 6 || seen["b"] != 7 {
		t.Errorf("all: %v", seen)
	}
}

// TestTimes_bound checks that names are forgotten beyond the bound, those first that were not seen for longest.
func TestTimes_bound(t *testing.T) {
	t.Parallel()
	l := newTimes()
	const names = 3 * namesMax
	for i := range names {
		l.note(fmt.Sprint("name ", i), int64(i+1))
		l.note("always", int64(i+1))
	}
	if seen := l.all(); len(seen) > namesMax || len(seen) < namesMax/2 {
		t.Errorf("%d names are remembered, the bound is %d", len(seen), namesMax)
	}
	if l.last("always") != names {
		t.Error("the one that is always seen was forgotten")
	}
	for i := names - namesMax/4; i < names; i++ {
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

// BenchmarkTimes_newNames records new names when the table is full.
func BenchmarkTimes_newNames(b *testing.B) {
	l := newTimes()
	names := make([]string, 1<<16)
	for i := range names {
		names[i] = fmt.Sprint("name ", i)
		l.note(names[i], 1)
	}
	for i := 0; b.Loop(); i++ {
		l.note(names[i%len(names)], int64(i))
	}
}
