package diary

// Write is a write to the store, as JSON.
type Write struct {
	TaskID string `json:"task"`
	Token  int64  `json:"token"`
	Worker string `json:"worker"`
	What   string `json:"what"`
}

// The kinds of writes: Mark when the work begins, Effect when it is done.
const (
	Mark   = "mark"
	Effect = "effect"
)
