package record

// Move moves the waiting tasks of a task type, its dead letters, to another type or back to
// where they came from. It is saved with the type, and never changed in place.
type Move struct {
	Number uint64 // the moment of the entry that started it
	To     string // "" = each task goes to the type of its Origin
	Rate   int32  // tasks a second; 0 = no limit
	// Until bounds the move: only tasks with lower ids are moved, so that one that fails and
	// comes back is not moved again.
	Until     uint64
	ToMove    int64 // tasks that waited at its start
	Moved     int64
	StartedAt int64 // by T
	NextAt    int64 // when the next tasks may be moved, by T
	Status    MoveStatus
	Failure   MoveFailure
}

// MoveStatus is the status of a Move. The numbers are in snapshots and never change.
type MoveStatus uint8

// The statuses.
const (
	MoveRunning   MoveStatus = 1
	MoveCompleted MoveStatus = 2
	MoveFailed    MoveStatus = 3
	MoveCancelled MoveStatus = 4
)

// MoveFailure says why a Move failed. The numbers are in snapshots and never change.
type MoveFailure uint8

// The failures. What was moved before stays moved.
const (
	MoveNoOrigin MoveFailure = 1 // a task was submitted to the type itself, so there is nowhere to move it back to
	MoveNoType   MoveFailure = 2 // a task's destination has no settings, or is no queue
	MoveOfStep   MoveFailure = 3 // a task is a step, which stays with its parent
)

// Moving reports whether the type has a move that has not ended.
func (t *TaskType) Moving() bool { return t.Move != nil && t.Move.Status == MoveRunning }

// move is field 20, a message; nil is not written.
func (f *Fields) move(v **Move) {
	m, ok := f.Message(20, *v != nil)
	if !ok {
		return
	}
	if *v == nil {
		*v = &Move{}
	}
	x := *v
	f.Uint(1, &x.Number)
	f.interned(2, &x.To)
	f.Int32(3, &x.Rate)
	f.ID(4, &x.Until)
	f.Int(5, &x.ToMove)
	f.Int(6, &x.Moved)
	f.Int(7, &x.StartedAt)
	f.Int(8, &x.NextAt)
	f.Enum(9, (*uint8)(&x.Status), uint8(MoveCancelled))
	f.Enum(10, (*uint8)(&x.Failure), uint8(MoveOfStep))
	f.EndMessage(m)
}
