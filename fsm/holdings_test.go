package fsm

import (
	"fmt"
	"maps"
	"slices"
	"testing"
)

// checkHoldings compares who holds which claims, and the counts by priority,
// with what the saved records say.
func (m *Machine) checkHoldings() error {
	workers, types := map[string][]uint64{}, map[string][]uint64{}
	for id, t := range m.tasks.All() {
		if t.Status == StatusClaimed {
			workers[t.WorkerID] = append(workers[t.WorkerID], id)
			types[t.Type] = append(types[t.Type], id)
		}
	}
	h := &m.holdings
	idle := 0
	for id, w := range h.workers {
		if got := h.list(w.held, heldByWorker); !slices.Equal(got, workers[id]) || w.held.count != len(got) || w.id != id {
			return fmt.Errorf("worker %q holds %d claims, %v, want %v", id, w.held.count, got, workers[id])
		}
		if w.held.count == 0 {
			idle++
		}
		delete(workers, id)
	}
	if len(workers) > 0 {
		return fmt.Errorf("nothing is known of the workers that hold %v", workers)
	}
	for name, ts := range m.types {
		if got := h.list(ts.held, heldByType); !slices.Equal(got, types[name]) || ts.held.count != len(got) {
			return fmt.Errorf("type %q has %d claims, %v, want %v", name, ts.held.count, got, types[name])
		}
	}
	if names, want := h.sorted.Keys(), slices.Sorted(maps.Keys(h.workers)); !slices.Equal(names, want) {
		return fmt.Errorf("workers are sorted as %q, want %q", names, want)
	}
	if n := h.countIdle(); n != idle || n != h.idleCount || n > idleWorkersMax {
		return fmt.Errorf("%d workers without a claim in the list, %d counted, there are %d", n, h.idleCount, idle)
	}
	free := 0
	for place := h.free; place != 0; place = h.places[place].links[heldByWorker].next {
		free++
	}
	if free+m.claims.Len()+1 != len(h.places) {
		return fmt.Errorf("%d places are free and %d taken of %d", free, m.claims.Len(), len(h.places)-1)
	}
	return m.checkCensus()
}

// list returns the tasks of the list, ascending.
func (h *holdings) list(l claimList, which int) (ids []uint64) {
	prev := uint32(0)
	for place := l.first; place != 0; place = h.places[place].links[which].next {
		if h.places[place].links[which].prev != prev || len(ids) > l.count {
			return nil
		}
		prev = place
	}
	h.tasks(l, which, l.count+1, func(id uint64) { ids = append(ids, id) })
	slices.Sort(ids)
	return ids
}

func (h *holdings) countIdle() (n int) {
	var prev *worker
	for w := h.idle.first; w != nil; w = w.next {
		if w.prev != prev || w.held.count > 0 {
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

func (m *Machine) checkCensus() error {
	ready, _ := m.claimablePlainly()
	for name, ts := range m.types {
		for _, t := range ready[name] {
			above := int64(0)
			for _, other := range ready[name] {
				if other.Priority > t.Priority {
					above++
				}
			}
			if got := ts.census.above(t.Priority); got != above {
				return fmt.Errorf("%d tasks of type %q are above priority %d, want %d", got, name, t.Priority, above)
			}
		}
		if n := ts.census.root; (n == nil) != (len(ready[name]) == 0) || n != nil && n.count != int64(len(ready[name])) {
			return fmt.Errorf("type %q has %d claimable tasks, its census %+v", name, len(ready[name]), n)
		}
	}
	return nil
}

// However many workers come and go, a bounded number is remembered.
func TestHoldings_forgetWorkers(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.submit(1, NewTask{Type: "mail"})
	for i := range idleWorkersMax + 100 {
		worker := fmt.Sprint("w", i)
		h.do(ClaimNext{WorkerID: worker, Limit: 1})
		h.do(Release{Hold: Hold{ID: 1, WorkerID: worker}})
	}
	h.do(ClaimNext{WorkerID: "last", Limit: 1})
	if n := len(h.m.holdings.workers); n != idleWorkersMax+1 || h.m.holdings.workers["w0"] != nil {
		t.Errorf("%d workers are remembered", n)
	}
	if got := h.m.Workers("", 10); len(got) != 1 || got[0].WorkerID != "last" {
		t.Errorf("workers are %+v", got)
	}
	mustCheck(t, h.m)
}
