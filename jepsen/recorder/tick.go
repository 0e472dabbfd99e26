package recorder

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
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

// dumpTrail reads the node's trail, by its own state, each event as it was
// answered.
func (r *Recorder) dumpTrail(ctx context.Context, node string) ([]string, error) {
	var events []string
	after := ""
	for {
		query := url.Values{"limit": {finalLimit}, "consistency": {"stale"}}
		if after != "" {
			query.Set("after", after)
		}
		var page struct {
			Events []json.RawMessage `json:"events"`
			Next   string            `json:"next"`
		}
		if err := r.askOne(ctx, node+"/api/events?"+query.Encode(), &page); err != nil {
			return nil, err
		}
		for _, e := range page.Events {
			events = append(events, string(e))
		}
		if len(page.Events) == 0 {
			return events, nil
		}
		after = page.Next
	}
}

// toldIn reads events as they were answered.
func toldIn(events []string) ([]history.Told, error) {
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
