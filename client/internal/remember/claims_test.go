package remember

import "testing"

func TestClaims(t *testing.T) {
	t.Parallel()
	var m Claims
	m.Add(Claim{TaskID: 1, WorkerID: "w", Token: 5})
	m.Add(Claim{TaskID: 1, WorkerID: "late", Token: 4})
	if r, _ := m.Get(1); r.Token != 5 {
		t.Errorf("an older claim took the place of a newer one: %+v", r)
	}
	m.Add(Claim{TaskID: 1, WorkerID: "w2", Token: 6})
	if r, _ := m.Get(1); r.WorkerID != "w2" {
		t.Errorf("got %+v", r)
	}
	for id := uint64(2); id <= claimsMax+1; id++ {
		m.Add(Claim{TaskID: id, Token: id})
	}
	if _, ok := m.Get(1); ok || m.order.Len() != claimsMax || len(m.byTask) != claimsMax {
		t.Errorf("the oldest is not forgotten: %d, %d", m.order.Len(), len(m.byTask))
	}
}
