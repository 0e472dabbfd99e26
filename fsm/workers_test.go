package fsm

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/index"
	"github.com/claimq/claimq/fsm/record"
)

// workers are those who hold claims, as plainly as can be.
func (s *model) workers() []WorkerView {
	var views []WorkerView
	for _, t := range s.tasks {
		if t.Status != record.StatusClaimed {
			continue
		}
		at := slices.IndexFunc(views, func(v WorkerView) bool { return v.WorkerID == t.WorkerID })
		if at < 0 {
			at = len(views)
			views = append(views, WorkerView{WorkerID: t.WorkerID})
		}
		v := &views[at]
		v.Claimed++
		if len(v.TaskIDs) < 100 {
			v.TaskIDs = append(v.TaskIDs, t.ID)
		}
		v.SeenT = max(v.SeenT, t.UpdatedAt)
	}
	slices.SortFunc(views, func(a, b WorkerView) int {
		if a.WorkerID < b.WorkerID {
			return -1
		}
		return 1
	})
	return views
}

// Of those who hold much, the first tasks are told; and pages end where they
// have looked at enough.
func TestWorkers_bounds(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.submit(12_500, record.NewTask{Type: "mail"})
	for i := range 12 {
		h.do(command.ClaimNext{WorkerID: fmt.Sprint("w", i%2), Limit: 1000})
	}
	for i := range 500 {
		h.do(command.ClaimNext{WorkerID: fmt.Sprintf("x%03d", i), Limit: 1})
	}
	var got []WorkerView
	for after := ""; ; after = got[len(got)-1].WorkerID {
		page := h.m.Workers(after, 200)
		if len(page) == 0 {
			break
		}
		if len(page) > 200 {
			t.Fatalf("a page of %d", len(page))
		}
		got = append(got, page...)
	}
	if len(got) != 502 || got[0].Claimed != 6000 || len(got[1].TaskIDs) != 100 || got[1].TaskIDs[0] != 1001 || got[1].TaskIDs[99] != 1100 {
		t.Errorf("%d workers, the first %+v", len(got), got[0])
	}
	h.submit(30_000, record.NewTask{Type: "scan"})
	for i := range 30 {
		h.do(command.ClaimNext{WorkerID: fmt.Sprint("y", i/15), Limit: 1000})
	}
	if page := h.m.Workers("x499", 10); len(page) != 2 || page[0].Claimed != 15_000 || page[0].TaskIDs == nil {
		t.Errorf("those who hold more than is looked at are %+v", page)
	}
	if page := h.m.Workers("", 10_000); len(page) != 503 {
		t.Errorf("a page that has looked at enough has %d", len(page))
	}
	mustCheck(t, h.m)
}

// Restored, the state tells the same of workers and of what waits.
func TestWhy_restored(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		m := newSmall()
		applyLog(t, m, randomLog(seed, 300))
		restored := restore(t, snapshotOf(t, m))
		if diff := cmp.Diff(m.Workers("", 1000), restored.Workers("", 1000)); diff != "" {
			t.Errorf("workers (-was +restored):\n%s", diff)
		}
		for id := range m.tasks.All() {
			was, _ := m.Why(id, m.Stamp())
			if is, ok := restored.Why(id, m.Stamp()); !ok || cmp.Diff(was, is) != "" {
				t.Errorf("task %d waits for %+v, restored for %+v", id, was, is)
			}
		}
		mustCheck(t, restored)
	}
}

// However many workers come and go, a bounded number is remembered.
func TestWorkers_idleAreForgotten(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.submit(1, record.NewTask{Type: "mail"})
	for i := range 2000 {
		worker := fmt.Sprint("w", i)
		h.do(command.ClaimNext{WorkerID: worker, Limit: 1})
		h.do(command.Release{Hold: command.Hold{ID: 1, WorkerID: worker}})
	}
	h.do(command.ClaimNext{WorkerID: "last", Limit: 1})
	known := 0
	h.m.claims.holdings.Workers("", func(*index.Worker) bool { known++; return true })
	if known > 1100 {
		t.Errorf("%d workers are remembered", known)
	}
	if got := h.m.Workers("", 10); len(got) != 1 || got[0].WorkerID != "last" {
		t.Errorf("workers are %+v", got)
	}
	mustCheck(t, h.m)
}
