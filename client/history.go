package client

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/claimq/claimq/api/wire"
)

// HistoryQuery says of what the history is asked for. The zero value: of all tasks, the last
// hour.
type HistoryQuery struct {
	TaskType string
	Last     time.Duration // how far back, in whole minutes up to 6 h; 0: an hour
}

// History is what a node remembers of the last hours. Each node looks at its own state, in
// memory, and answers for itself.
type History struct {
	NodeID   string
	Interval time.Duration
	Since    time.Time // when the node began to look; zero: it has not
	Kept     bool      // false: the node keeps no numbers of the type, or has not seen it
	Points   []HistoryPoint
}

// HistoryPoint is an interval.
type HistoryPoint struct {
	From  time.Time
	Known bool // false: the node did not see the interval whole, and the numbers are 0
	// Submitted and its like are how many tasks were in the interval, Pending and its like
	// what there was at its end.
	Submitted, Completed, Failed int64
	Pending, Claimed             int64
	OldestPendingAge             time.Duration // 0 if none was pending
	// Waited is how long the tasks claimed in the interval had been pending, Ran how long
	// those completed in it had been claimed; nil if there were none.
	Waited, Ran *Quantiles
}

// Quantiles are the times that a half, and 99 of 100, did not exceed, right to about an eighth.
type Quantiles struct{ P50, P99 time.Duration }

// History returns what the node that is asked remembers of the last hours.
func (c *Client) History(ctx context.Context, q HistoryQuery) (*History, error) {
	values := url.Values{}
	if q.TaskType != "" {
		values.Set("task_type", q.TaskType)
	}
	if q.Last != 0 {
		values.Set("minutes", strconv.FormatInt(int64(q.Last/time.Minute), 10))
	}
	var w wire.History
	err := c.get(ctx, withQuery("/api/history", values), &w)
	if err == nil && (!w.Even() || w.From == nil && len(w.Submitted) > 0) {
		err = errors.New("the answer's arrays are not of the same intervals")
	}
	if err != nil {
		return nil, fmt.Errorf("get history: %w", err)
	}
	h := &History{NodeID: w.NodeID, Interval: time.Duration(w.IntervalMS) * time.Millisecond, Kept: w.Kept, Points: make([]HistoryPoint, len(w.Submitted))}
	if w.Since != nil {
		h.Since = *w.Since
	}
	for i := range h.Points {
		p := &h.Points[i]
		p.From = w.From.Add(time.Duration(i) * h.Interval)
		if p.Known = w.Submitted[i] != nil; !p.Known {
			continue
		}
		p.Submitted, p.Completed, p.Failed = orZero(w.Submitted[i]), orZero(w.Completed[i]), orZero(w.Failed[i])
		p.Pending, p.Claimed = orZero(w.Pending[i]), orZero(w.Claimed[i])
		p.OldestPendingAge = time.Duration(orZero(w.OldestPendingAgeMS[i])) * time.Millisecond
		p.Waited, p.Ran = quantilesFromWire(w.WaitedP50MS[i], w.WaitedP99MS[i]), quantilesFromWire(w.RanP50MS[i], w.RanP99MS[i])
	}
	return h, nil
}

func orZero(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

func quantilesFromWire(p50, p99 *int64) *Quantiles {
	if p50 == nil || p99 == nil {
		return nil
	}
	return &Quantiles{time.Duration(*p50) * time.Millisecond, time.Duration(*p99) * time.Millisecond}
}
