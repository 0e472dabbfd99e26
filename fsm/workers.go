package fsm

import "github.com/claimq/claimq/fsm/index"

// WorkerView is what the state knows of a worker that holds claims.
type WorkerView struct {
	WorkerID string
	Claimed  int      // how many
	TaskIDs  []uint64 // the first workerTasksMax, ascending
	SeenT    int64    // the newest change of a task that it holds, by T
}

const (
	// workerTasksMax bounds WorkerView.TaskIDs.
	workerTasksMax = 100
	// workerClaimsMax is how many claims of one worker are looked at: of one that
	// holds more, TaskIDs and SeenT tell the newest so many.
	workerClaimsMax = 10_000
	// workersLookMax is after how many claims Workers stops.
	workersLookMax = 20_000
)

// Workers returns those who hold claims, sorted by id, at most limit of them
// from the first whose id is above after. It looks at a bounded number of
// claims, so it may return fewer: only an empty answer means that there are no
// more.
func (m *Machine) Workers(after string, limit int) []WorkerView {
	var views []WorkerView
	looked := 0
	m.holdings.Workers(after, func(w *index.Worker) bool {
		if len(views) >= limit || looked >= workersLookMax {
			return false
		}
		if w.ID > after && w.Held.Len() > 0 {
			views = append(views, m.workerView(w))
			looked += min(w.Held.Len(), workerClaimsMax)
		}
		return true
	})
	return views
}

func (m *Machine) workerView(w *index.Worker) WorkerView {
	v := WorkerView{WorkerID: w.ID, Claimed: w.Held.Len()}
	ids := index.Smallest{Most: workerTasksMax}
	m.holdings.Tasks(w.Held, index.ByWorker, workerClaimsMax, func(id uint64) {
		ids.Add(id)
		v.SeenT = max(v.SeenT, m.tasks.Get(id).UpdatedAt)
	})
	v.TaskIDs = ids.IDs
	return v
}
