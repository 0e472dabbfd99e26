package fsm

// gone is what is remembered of a task that retention or eviction removed, so
// that repeats still get their answer. It is saved under the task's id.
type gone struct {
	Key    string
	Status Status // completed, failed or cancelled
	// WorkerID, Token and Outcome are of the last claim that ended, zero if there was none.
	WorkerID string
	Token    uint64
	Outcome  Outcome
	Same     uint64 // hash of type and parameters
	Then     *Then
	ForgetU  int64 // when it is forgotten, by the lease clock
}
