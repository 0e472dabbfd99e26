package fsm

import (
	"fmt"
	"slices"

	"github.com/claimq/claimq/fsm/index"
	"github.com/claimq/claimq/fsm/record"
)

// checkHoldings compares who holds which claims with what the saved records say.
func (m *Machine) checkHoldings() error {
	workers, types := map[string][]uint64{}, map[string][]uint64{}
	for id, t := range m.tasks.All() {
		if t.Status == record.StatusClaimed {
			workers[t.WorkerID] = append(workers[t.WorkerID], id)
			types[t.Type] = append(types[t.Type], id)
		}
	}
	problem := error(nil)
	m.claims.holdings.Workers("", func(w *index.Worker) bool {
		if got := m.tasksHeld(w.Held, index.ByWorker); !slices.Equal(got, workers[w.ID]) || w.Held.Len() != len(got) {
			problem = fmt.Errorf("worker %q holds %d claims, %v, want %v", w.ID, w.Held.Len(), got, workers[w.ID])
		}
		delete(workers, w.ID)
		return problem == nil
	})
	switch {
	case problem != nil:
		return problem
	case len(workers) > 0:
		return fmt.Errorf("nothing is known of the workers that hold %v", workers)
	}
	for ts := range m.types.from("") {
		name := ts.Name()
		if got := m.tasksHeld(ts.held, index.ByType); !slices.Equal(got, types[name]) || ts.held.Len() != len(got) {
			return fmt.Errorf("type %q has %d claims, %v, want %v", name, ts.held.Len(), got, types[name])
		}
	}
	return nil
}

// tasksHeld returns the tasks of the list, ascending.
func (m *Machine) tasksHeld(l index.Claims, which int) (ids []uint64) {
	m.claims.holdings.Tasks(l, which, l.Len()+1, func(id uint64) { ids = append(ids, id) })
	slices.Sort(ids)
	return ids
}
