package fsm

import (
	"bytes"
	"slices"
	"testing"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// A list that selects by data finds tasks whether they rest or not, and no look reads many large ones.
func TestList_data(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.submit(3, record.NewTask{Type: "mail", Params: []byte(`{"to":"ada"}`)})
	h.submit(1, record.NewTask{Type: "mail", Params: []byte(`{"to":"bob"}`)})
	h.submit(1, record.NewTask{Type: "mail", Payload: []byte("for ada")})
	h.submit(5, record.NewTask{Type: "scan", Payload: make([]byte, 400<<10)})
	h.submit(1, record.NewTask{Type: "scan", Payload: append(make([]byte, 400<<10), "ada"...)})
	h.do(command.Cancel{ID: 2})
	q := ListQuery{Limit: 10, Look: 500, Data: func(params, payload []byte) bool {
		return bytes.Contains(params, []byte("ada")) || bytes.Contains(payload, []byte("ada"))
	}}
	var found []uint64
	looks := 0
	for {
		page := h.m.List(q)
		for _, task := range page.Tasks {
			found = append(found, task.ID)
		}
		if read := page.Read - q.Read; read > lookReadMax+400<<10+3 {
			t.Fatalf("look %d reads %d bytes", looks, read)
		}
		if looks++; page.Next == 0 {
			break
		}
		if page.Full {
			t.Fatalf("the page is full after %d bytes", page.Read)
		}
		q.From, q.Looked, q.Bytes, q.Read, q.Limit = page.Next, page.Looked, page.Bytes, page.Read, q.Limit-len(page.Tasks)
	}
	if want := []uint64{1, 2, 3, 5, 11}; !slices.Equal(found, want) || looks != 2 {
		t.Errorf("found %v in %d looks, want %v in 2", found, looks, want)
	}
	q.From, q.Looked, q.Read, q.Limit = 6, 0, pageReadMax, 10
	if page := h.m.List(q); !page.Full || page.Next == 0 {
		t.Errorf("a page goes on after %d bytes", page.Read)
	}
	if page := h.m.List(ListQuery{Filter: record.Filter{Key: "none"}, Limit: 1, Data: q.Data}); len(page.Tasks) != 0 {
		t.Errorf("found %v", page.Tasks)
	}
}
