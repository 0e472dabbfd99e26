package wire

import "time"

// History is the answer of GET /api/history. Each array has a number for each interval, null if it is unknown.
type History struct {
	Success            bool       `json:"success"`
	NodeID             string     `json:"node_id"`
	IntervalMS         int64      `json:"interval_ms"`
	Since              *time.Time `json:"since"` // nil: recording has not begun
	From               *time.Time `json:"from"`  // the beginning of the first interval; nil: there are no intervals
	Kept               bool       `json:"kept"`  // false: the node has no numbers of the type
	Submitted          []*int64   `json:"submitted"`
	Completed          []*int64   `json:"completed"`
	Failed             []*int64   `json:"failed"`
	Pending            []*int64   `json:"pending"`
	Claimed            []*int64   `json:"claimed"`
	OldestPendingAgeMS []*int64   `json:"oldest_pending_age_ms"`
	WaitedP50MS        []*int64   `json:"waited_p50_ms"`
	WaitedP99MS        []*int64   `json:"waited_p99_ms"`
	RanP50MS           []*int64   `json:"ran_p50_ms"`
	RanP99MS           []*int64   `json:"ran_p99_ms"`
}

// Even reports whether all arrays have the same length.
func (h *History) Even() bool {
	for _, array := range [...][]*int64{h.Completed, h.Failed, h.Pending, h.Claimed, h.OldestPendingAgeMS, h.WaitedP50MS, h.WaitedP99MS, h.RanP50MS, h.RanP99MS} {
		if len(array) != len(h.Submitted) {
			return false
		}
	}
	return true
}
