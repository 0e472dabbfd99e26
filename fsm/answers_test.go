package fsm

import "testing"

// A reset reuses values, zeroed; beyond the bound it leaves
// them to the collector.
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

// A slab that few elements are taken from is small; it reaches its size by doubling, and
// keeps for after a reset only what has that size.
func TestSlab_beginsSmall(t *testing.T) {
	t.Parallel()
	s := slab[int]{size: 4 * slabKept, spares: 2}
	s.take(1)
	if len(s.all) != slabKept {
		t.Errorf("the first allocation is of %d elements, want %d", len(s.all), slabKept)
	}
	s.take(slabKept)
	if len(s.all) != 2*slabKept {
		t.Errorf("the second allocation is of %d elements, want %d", len(s.all), 2*slabKept)
	}
	if s.take(3 * slabKept); len(s.all) != 4*slabKept {
		t.Errorf("the third allocation is of %d elements, want %d", len(s.all), 4*slabKept)
	}
	if len(s.full) != 0 {
		t.Errorf("%d allocations that are too small are kept", len(s.full))
	}
	s.take(4 * slabKept)
	if s.reset(); len(s.spare) != 1 || len(s.spare[0]) != s.size {
		t.Errorf("%d allocations are kept beside the newest, want one of the size", len(s.spare))
	}
}
