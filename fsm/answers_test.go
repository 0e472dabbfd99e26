package fsm

import "testing"

// What a reset takes back is handed out again, at its zero value; beyond the bound
// it is left to the collector.
func TestSlab_reset(t *testing.T) {
	t.Parallel()
	s := slab[int]{size: 4, spares: 2}
	fill := func() map[*int]bool {
		taken := map[*int]bool{}
		for range 20 { // five allocations
			one := s.take(1)
			if one[0] != 0 {
				t.Fatalf("an element is %d when it is handed out", one[0])
			}
			if taken[&one[0]] {
				t.Fatal("an element is handed out twice")
			}
			one[0], taken[&one[0]] = 1, true
		}
		return taken
	}
	before := fill()
	s.reset()
	again := 0
	for p := range fill() {
		if before[p] {
			again++
		}
	}
	if again != 12 { // the newest and two spares, of four each
		t.Errorf("%d elements were handed out again, want 12", again)
	}
	if kept := len(s.full) + len(s.spare); kept != 2 {
		t.Errorf("%d allocations are kept beside the newest, want 2", kept)
	}
}

// Within the bound nothing is left to the collector.
func TestSlab_keepsAll(t *testing.T) {
	t.Parallel()
	s := slab[int]{size: 4, spares: 2}
	for pass := range 3 {
		for range 12 {
			s.take(1)
		}
		s.reset()
		if len(s.spare) != 2 {
			t.Errorf("pass %d: %d allocations are kept beside the newest, want 2", pass, len(s.spare))
		}
	}
}

// Elements that callers keep are never handed out again.
func TestSlab_kept(t *testing.T) {
	t.Parallel()
	s := slab[int]{size: 4}
	for range 20 {
		s.take(1)
	}
	if len(s.full) != 0 {
		t.Errorf("%d allocations are kept to be used again, want none", len(s.full))
	}
}
