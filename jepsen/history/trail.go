package history

// Told is an event of the trail, as a node told it.
type Told struct {
	Index   uint64 `json:"i"` // of the log entry
	Sub     uint32 `json:"s,omitempty"`
	At      int64  `json:"at"` // ms since the Unix epoch, by the cluster's calendar
	Kind    string `json:"k"`
	TaskID  uint64 `json:"task,omitempty"` // 0 = about no task
	Worker  string `json:"w,omitempty"`
	Token   uint64 `json:"tok,omitempty"`
	Attempt int32  `json:"n,omitempty"`
	Message string `json:"msg,omitempty"`
}

// Schedule is a schedule that was set while callers were at work, and deleted
// when they had gone. Its tasks are of TickType and can never be claimed, so
// that no call is about them: the trail alone tells of them.
type Schedule struct {
	Name    string `json:"name"`
	EveryMS int64  `json:"every"`
	// Index is the entry that set it, FirstMS the slot that it then waited for.
	Index   uint64 `json:"index"`
	FirstMS int64  `json:"first"`
}

// TickType is the type of the tasks that schedules submit. They are in no list
// and no final state of a history.
const TickType = "tick"
