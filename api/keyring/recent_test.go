package keyring

import (
	"crypto/sha256"
	"fmt"
	"testing"
)

func TestRecent(t *testing.T) {
	t.Parallel()
	r := newRecent[int](100)
	sum := func(i int) *[sha256.Size]byte { s := sha256.Sum256(fmt.Append(nil, i)); return &s }
	for i := range 1000 {
		if got := r.keep(sum(i), func() int { return i }); got != i {
			t.Fatalf("%d: %d", i, got)
		}
		if _, ok := r.get(sum(0)); !ok {
			t.Fatalf("what is asked for is gone after %d", i)
		}
		if n := r.count(); n > 100 {
			t.Fatalf("%d are kept", n)
		}
		if _, ok := r.get(sum(max(i-20, 0))); !ok {
			t.Fatalf("%d is gone after %d", i-20, i)
		}
	}
	r.put(sum(0), -1)
	if v, ok := r.get(sum(0)); !ok || v != -1 {
		t.Error(v, ok)
	}
}
