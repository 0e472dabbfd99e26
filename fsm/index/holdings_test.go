package index

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/internal/proof"
)

// check compares the holdings with the claims that there are, by place: who holds
// each. It returns what is wrong.
func (h *Holdings) check(held map[uint32]claimed) error {
	workers := map[string][]uint64{}
	for _, c := range held {
		workers[c.worker] = append(workers[c.worker], c.task)
	}
	idle := 0
	for id, w := range h.workers {
		slices.Sort(workers[id])
		if got := h.list(w.Held, ByWorker); !slices.Equal(got, workers[id]) || w.Held.count != len(got) || w.ID != id {
			return fmt.Errorf("worker %q holds %d claims, %v, want %v", id, w.Held.count, got, workers[id])
		}
		if w.Held.count == 0 {
			idle++
		}
		delete(workers, id)
	}
	if len(workers) > 0 {
		return fmt.Errorf("nothing is known of the workers that hold %v", workers)
	}
	if names, want := h.sorted.Keys(), slices.Sorted(maps.Keys(h.workers)); !slices.Equal(names, want) {
		return fmt.Errorf("workers are sorted as %q, want %q", names, want)
	}
	if n := h.countIdle(); n != idle || n != h.idleCount || n > idleWorkersMax {
		return fmt.Errorf("%d workers without a claim in the list, %d counted, there are %d", n, h.idleCount, idle)
	}
	free := 0
	for place := h.free; place != 0; place = h.places[place].links[ByWorker].next {
		free++
	}
	if free+len(held)+1 != len(h.places) {
		return fmt.Errorf("%d places are free and %d taken of %d", free, len(held), len(h.places)-1)
	}
	return nil
}

// list returns the tasks of the list, ascending.
func (h *Holdings) list(l Claims, which int) (ids []uint64) {
	prev := uint32(0)
	for place := l.first; place != 0; place = h.places[place].links[which].next {
		if h.places[place].links[which].prev != prev || len(ids) > l.count {
			return nil
		}
		prev = place
	}
	h.Tasks(l, which, l.count+1, func(id uint64) { ids = append(ids, id) })
	slices.Sort(ids)
	return ids
}

func (h *Holdings) countIdle() (n int) {
	var prev *Worker
	for w := h.idle.first; w != nil; w = w.next {
		if w.prev != prev || w.Held.count > 0 {
			return -1
		}
		prev = w
		n++
	}
	if h.idle.last != prev {
		return -1
	}
	return n
}

// claimed is a claim as the test knows it.
type claimed struct {
	worker string
	task   uint64
	kind   int
}

// TestHoldings holds claims of several workers and types, and lets go of them in any
// order.
func TestHoldings(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(rt *rapid.T) {
		h := NewHoldings()
		types := make([]Claims, 3)
		held := map[uint32]claimed{}
		for task := range uint64(rapid.IntRange(1, 100).Draw(rt, "steps")) {
			if len(held) > 0 && rapid.Bool().Draw(rt, "let go") {
				place := rapid.SampledFrom(slices.Sorted(maps.Keys(held))).Draw(rt, "place")
				h.LetGo(&types[held[place].kind], place)
				delete(held, place)
			} else {
				c := claimed{fmt.Sprint("w", rapid.IntRange(0, 4).Draw(rt, "worker")), task, rapid.IntRange(0, 2).Draw(rt, "type")}
				place := h.Hold(&types[c.kind], c.worker, c.task)
				if _, taken := held[place]; taken || place == 0 {
					rt.Fatalf("the place %d was given to two", place)
				}
				held[place] = c
			}
			if err := h.check(held); err != nil {
				rt.Fatal(err)
			}
			for kind, list := range types {
				var want []uint64
				for _, c := range held {
					if c.kind == kind {
						want = append(want, c.task)
					}
				}
				slices.Sort(want)
				if got := h.list(list, ByType); !slices.Equal(got, want) || list.Len() != len(want) {
					rt.Fatalf("of type %d there are %v, want %v", kind, got, want)
				}
			}
		}
	})
}

// However many workers come and go, a bounded number is remembered.
func TestHoldings_forgetWorkers(t *testing.T) {
	t.Parallel()
	h := NewHoldings()
	var list Claims
	for i := range idleWorkersMax + 100 {
		h.LetGo(&list, h.Hold(&list, fmt.Sprint("w", i), 1))
	}
	place := h.Hold(&list, "last", 1)
	if n := len(h.workers); n != idleWorkersMax+1 || h.workers["w0"] != nil {
		t.Errorf("%d workers are remembered", n)
	}
	if err := h.check(map[uint32]claimed{place: {worker: "last", task: 1}}); err != nil {
		t.Error(err)
	}
}
