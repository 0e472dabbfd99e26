package fsm

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// newRestful returns the empty state, in which every waiting task rests at once.
func newRestful() *Machine {
	m := New()
	m.tasks.busy = 0
	return m
}

// evenRests is a packing in which records of even values rest, of several sizes.
type evenRests struct{}

func (evenRests) rests(r *record) bool { return r.Value%2 == 0 }

func (evenRests) pack(b []byte, r *record) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(r.Value))
	return append(b, make([]byte, r.Value%50)...)
}

func (evenRests) unpack(b []byte, _ bool) *record {
	return &record{int(binary.LittleEndian.Uint64(b))}
}

// Tasks that have long waited are kept as bytes, in pieces of memory for a page
// each, and are the same as the others for whoever looks; when the queue is
// worked off, nothing is left of that.
func TestTable_RestsInPages(t *testing.T) {
	t.Parallel()
	h := &harness{t: t, m: New(), stamp: Stamp{T: 1_700_000_000_000}}
	h.do(SetLevel{Level: FeatureLevel})
	const tasks = (busyPages + 24) * pageSize
	for i := range tasks {
		h.do(Submit{Tasks: []NewTask{{Type: "mail", Params: []byte(fmt.Sprintf(`{"n":%d}`, i)), Key: fmt.Sprint("key-", i), Labels: []Label{{"a", "b"}}}}})
	}
	pages, resting := 0, 0
	for i, p := range h.m.tasks.pages {
		if p.resting == nil {
			continue
		}
		pages++
		resting += p.resting.count
		if i >= len(h.m.tasks.pages)-busyPages || cap(p.resting.bytes) != p.resting.live {
			t.Errorf("page %d of %d holds %d bytes for %d", i, len(h.m.tasks.pages), cap(p.resting.bytes), p.resting.live)
		}
	}
	if want := len(h.m.tasks.pages) - busyPages; pages != want || resting != want*pageSize-1 { // id 0 is none
		t.Errorf("%d tasks rest in %d pages of %d", resting, pages, len(h.m.tasks.pages))
	}
	got := h.m.Get(5)
	want := &Task{
		ID: 5, Type: "mail", Params: []byte(`{"n":4}`), Key: "key-4", Status: StatusPending, Options: &Options{Labels: []Label{{"a", "b"}}},
		CreatedAt: got.CreatedAt, UpdatedAt: got.CreatedAt,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a task that rests (-want +got):\n%s", diff)
	}
	for i := range tasks {
		c := h.do(ClaimNext{WorkerID: "w", Types: []string{"mail"}, Limit: 1}).Claims[0]
		if want := fmt.Sprintf(`{"n":%d}`, i); string(c.Task.Params) != want {
			t.Fatalf("claim %d is of %s", i, c.Task.Params)
		}
	}
	for i, p := range h.m.tasks.pages {
		if p.resting != nil {
			t.Errorf("page %d: %d tasks rest, all are claimed", i, p.resting.count)
		}
	}
	mustCheck(t, h.m)
}

// What records leave behind that rested is given back, but for a few pages: whether
// they leave a page one after the other or here and there.
func TestTable_givesBack(t *testing.T) {
	t.Parallel()
	const pages = 100
	for name, order := range map[string]func(n int) uint64{
		"page by page":   func(n int) uint64 { return uint64(n) },
		"here and there": func(n int) uint64 { return uint64(n%pages)*pageSize + uint64(n/pages) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := &table[record]{packing: evenRests{}}
			for id := range uint64(pages * pageSize) {
				tab.put(id, &record{int(2 * id)})
				tab.rest(id)
			}
			for n := range pages * pageSize * 3 / 4 {
				tab.edit(order(n))
			}
			sparse := 0
			for _, p := range tab.pages {
				if p.resting != nil && p.resting.sparse() {
					sparse++
				}
			}
			if most := len(tab.draining); sparse > most {
				t.Errorf("%d pages have memory to give back, %d may", sparse, most)
			}
			for id := range uint64(pages * pageSize) {
				if got := tab.get(id); got.Value != int(2*id) {
					t.Fatalf("record %d is %d", id, got.Value)
				}
			}
		})
	}
}

// A task that waited has memory of its own for its params once it is claimed, whatever
// room there is beside it.
func TestWaitingTasks_params(t *testing.T) {
	t.Parallel()
	w := waitingTasks{New()}
	for n := range 600 {
		want := &Task{ID: 7, Type: "mail", Params: bytes.Repeat([]byte{'x'}, n), Payload: []byte("p")}
		if n == 0 {
			want.Params = nil
		}
		packed := w.pack(nil, want)
		got := w.unpack(packed, false)
		for i := range packed {
			packed[i] = '-'
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%d bytes of params (-want +got):\n%s", n, diff)
		}
		if cap(got.Params) > n+n/4+8 {
			t.Errorf("%d bytes of params have room for %d", n, cap(got.Params))
		}
	}
}
