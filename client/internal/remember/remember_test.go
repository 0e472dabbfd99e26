package remember

import (
	"strconv"
	"testing"
)

func TestClaims(t *testing.T) {
	t.Parallel()
	var m Claims
	m.Add(Claim{TaskID: 1, WorkerID: "w", Token: 5})
	m.Add(Claim{TaskID: 1, WorkerID: "late", Token: 4})
	if r, _ := m.Get(1); r.Token != 5 {
		t.Errorf("an older claim took the place of a newer one: %+v", r)
	}
	m.Add(Claim{TaskID: 1, WorkerID: "w2", Token: 6})
	if r, _ := m.Get(1); r != (Claim{1, "w2", 6}) {
		t.Errorf("got %+v", r)
	}
	m.Forget(1)
	m.Forget(1)
	if r, ok := m.Get(1); ok {
		t.Errorf("it is forgotten, got %+v", r)
	}
	m.Add(Claim{TaskID: 1, WorkerID: "w3", Token: 7})
	for id := uint64(2); id <= 3*claimsMax; id++ {
		m.Add(Claim{TaskID: id, WorkerID: "w" + strconv.FormatUint(id%1000, 10), Token: id})
	}
	if _, ok := m.Get(1); ok {
		t.Error("the oldest is not forgotten")
	}
	const oldest = 2*claimsMax + 1
	for id := uint64(oldest); id <= 3*claimsMax; id++ {
		if r, _ := m.Get(id); r != (Claim{id, "w" + strconv.FormatUint(id%1000, 10), id}) {
			t.Fatalf("claim %d is %+v", id, r)
		}
	}
	if _, ok := m.Get(oldest - 1); ok || len(m.byTask) != claimsMax || len(m.ring) != claimsMax {
		t.Errorf("%d claims in %d places are remembered", len(m.byTask), len(m.ring))
	}
}

// A worker's id is kept once, for as long as a claim has it.
func TestClaims_workers(t *testing.T) {
	t.Parallel()
	var m Claims
	for id := uint64(1); id <= 2*claimsMax; id++ {
		m.Add(Claim{TaskID: id, WorkerID: "w" + strconv.FormatUint(id, 10), Token: id})
	}
	if n, most := len(m.workers.places), claimsMax; n != most || len(m.workers.ids) > most+1 {
		t.Errorf("%d ids in %d places, of %d claims", n, len(m.workers.ids), most)
	}
	for id := uint64(1); id <= 2*claimsMax; id++ {
		m.Add(Claim{TaskID: id, WorkerID: "one", Token: 2*claimsMax + id})
	}
	if n := len(m.workers.places); n != 1 || len(m.workers.free) != len(m.workers.ids)-1 {
		t.Errorf("%d ids are kept, and %d of %d places free", n, len(m.workers.free), len(m.workers.ids))
	}
}
