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
		t := history.Told{Index: e.Index, Sub: e.Sub, At: e.Time.UnixMilli(), Kind: e.Event, Message: e.Message}
		if e.TaskID != nil {
			t.TaskID = *e.TaskID
		}
		if e.ClaimToken != nil {
			t.Token = *e.ClaimToken
		}
		if e.WorkerID != nil {
			t.Worker = *e.WorkerID
		}
		if e.Attempt != nil {
			t.Attempt = *e.Attempt
		}
		trail = append(trail, t)
	}
	return trail, nil
}
