package recorder

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/jepsen/history"
)

const (
	tickName    = "tick"
	tickEveryMS = 1000
	// tickDelayMS is how long the schedule's tasks are not claimable: longer than
	// any run lasts.
	tickDelayMS = 24 * 60 * 60 * 1000
)

// SetTick sets the schedule of the run, at whichever node takes it, until it is
// acknowledged or ctx ends. Only what was acknowledged is noted.
func (r *Recorder) SetTick(ctx context.Context, nodes []string) {
	body, err := json.Marshal(wire.NewSchedule{
		Task:    &wire.NewTask{TaskType: history.TickType, Params: json.RawMessage("{}"), DelayMS: tickDelayMS},
		EveryMS: tickEveryMS, Overlap: "allow",
	})
	if err != nil {
		return
	}
	var answer wire.Schedules
	index, err := r.schedule(ctx, nodes, http.MethodPut, body, &answer)
	if err != nil || answer.Schedule == nil || answer.Schedule.NextRunAt == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tick = &history.Schedule{Name: tickName, EveryMS: tickEveryMS, Index: index, FirstMS: answer.Schedule.NextRunAt.UnixMilli()}
}

// EndTick deletes the schedule of the run, so that the nodes' states come to
// rest.
func (r *Recorder) EndTick(ctx context.Context, nodes []string) error {
	if _, err := r.schedule(ctx, nodes, http.MethodDelete, nil, nil); err != nil {
		return fmt.Errorf("delete the schedule: %w", err)
	}
	return nil
}

// schedule asks for something about the schedule, until it is done or ctx ends,
// and returns the index of the answer. To delete what is not there is done.
func (r *Recorder) schedule(ctx context.Context, nodes []string, method string, body []byte, answer *wire.Schedules) (uint64, error) {
	for n := 0; ; n++ {
		index, err := r.scheduleOnce(ctx, nodes[n%len(nodes)], method, body, answer)
		if err == nil {
			return index, nil
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(retryPause):
		}
	}
}

var errNotNow = errors.New("not done")

func (r *Recorder) scheduleOnce(ctx context.Context, node, method string, body []byte, answer *wire.Schedules) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, node+"/api/schedules/"+tickName, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	resp, err := r.http.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	switch {
	case method == http.MethodDelete && resp.StatusCode == http.StatusNotFound:
		return 0, nil
	case resp.StatusCode/100 != 2:
		return 0, fmt.Errorf("%w: status %d", errNotNow, resp.StatusCode)
	case answer == nil:
		return 0, nil
	}
	if err := json.NewDecoder(resp.Body).Decode(answer); err != nil {
		return 0, err
	}
	return strconv.ParseUint(resp.Header.Get("X-Claimq-Index"), 10, 64)
}
