package recorder

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/jepsen/history"
)

const (
	tickPath    = "/api/schedules/" + history.Tick
	tickEveryMS = 1000
	// tickDelayMS is the time for which the schedule's tasks cannot be claimed: longer than
	// any run.
	tickDelayMS = 24 * 60 * 60 * 1000
)

// SetTick sets the schedule of the run, at any node that accepts it, until it is
// acknowledged or ctx ends.
func (r *Recorder) SetTick(ctx context.Context, nodes []string) {
	body := wire.NewSchedule{
		Task:    &wire.NewTask{TaskType: history.Tick, Params: json.RawMessage("{}"), DelayMS: new(int64(tickDelayMS))},
		EveryMS: tickEveryMS, Overlap: "allow",
	}
	_, _ = r.askAny(ctx, nodes, http.MethodPut, tickPath, body, nil) // fails only when ctx ends, and it is only load
}

// EndTick deletes the schedule of the run, so that the nodes' states no longer change.
func (r *Recorder) EndTick(ctx context.Context, nodes []string) error {
	if _, err := r.askAny(ctx, nodes, http.MethodDelete, tickPath, nil, nil); err != nil {
		return fmt.Errorf("delete the schedule: %w", err)
	}
	return nil
}
