package fsm

// WorkerView is what the state knows of a worker that holds claims.
type WorkerView struct {
	WorkerID string
	Claimed  int      // how many
	TaskIDs  []uint64 // the first workerTasksMax, ascending
	SeenT    int64    // the newest change of a task that it holds, by T
}

// workerTasksMax bounds WorkerView.TaskIDs.
const workerTasksMax = 100

// Workers returns those who hold claims, sorted by id, at most limit of them
// from the first whose id is above after.
func (m *Machine) Workers(after string, limit int) []WorkerView { return nil }
