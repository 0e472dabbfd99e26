package client

// TaskStatus is where a task is in its life.
type TaskStatus string

// The statuses. The last three are ends.
const (
	StatusPending   TaskStatus = "pending"   // can be claimed
	StatusScheduled TaskStatus = "scheduled" // waits for its time
	StatusBlocked   TaskStatus = "blocked"   // a step that waits for others
	StatusClaimed   TaskStatus = "claimed"   // a worker holds it
	StatusRunning   TaskStatus = "running"   // a parent whose steps go on
	StatusCompleted TaskStatus = "completed"
	StatusFailed    TaskStatus = "failed"
	StatusCancelled TaskStatus = "cancelled"
)

// Ended reports whether the status is an end.
func (s TaskStatus) Ended() bool {
	return s == StatusCompleted || s == StatusFailed || s == StatusCancelled
}
