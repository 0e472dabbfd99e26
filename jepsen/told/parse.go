package told

import (
	"encoding/json"
	"fmt"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/jepsen/history"
)

// Parse reads events as they were answered.
func Parse(events []string) ([]history.Told, error) {
	var trail []history.Told
	for _, text := range events {
		var e wire.Event
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			return nil, fmt.Errorf("read the trail: %w", err)
		}
		trail = append(trail, history.Told{
			Index: e.Index, Sub: e.Sub, At: e.Time.UnixMilli(), Kind: e.Event, Message: e.Message,
			TaskID: value(e.TaskID), Token: value(e.ClaimToken), Worker: value(e.WorkerID), Attempt: value(e.Attempt),
		})
	}
	return trail, nil
}

// value returns what p points to, the zero value if it is nil.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
