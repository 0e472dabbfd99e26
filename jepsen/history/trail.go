package history

// Told is an event of the trail, as a node returned it.
type Told struct {
	Index   uint64 `json:"i"` // of the log entry
	Sub     uint32 `json:"s,omitempty"`
	At      int64  `json:"at"` // ms since the Unix epoch, by the cluster's calendar
	Kind    string `json:"k"`
	TaskID  uint64 `json:"task,omitempty"` // 0 = about no task
	Worker  string `json:"w,omitempty"`
	Token   uint64 `json:"tok,omitempty"`
	Message string `json:"msg,omitempty"`
}

// Tick is the name of the schedule that submits tasks while callers are at work, and the type
// of its tasks. They can never be claimed, and are in no list and no final state of a history:
// only the trail contains them.
const Tick = "tick"
