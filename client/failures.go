package client

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/claimq/claimq/api/wire"
)

// FailuresQuery says which failed tasks to group. The zero value: the latest of all types.
type FailuresQuery struct {
	TaskType string
	Limit    int    // how many groups, the largest first; 0: 100
	After    string // Failures.Next of the page before
}

// Failures are failed tasks, by type and error: the 10,000 that failed last, or last before
// those of the page before.
type Failures struct {
	Groups []FailureGroup // the largest first
	Count  int            // how many groups there are, those left out too
	Looked int            // how many tasks were grouped
	Failed int64          // how many there are that have failed
	Next   string         // FailuresQuery.After of the next page; "": there is none
}

// FailureGroup is the failed tasks of one type whose errors differ in nothing but numbers,
// ids and quoted parts of their first line.
type FailureGroup struct {
	Group     string // what Filter.ErrorGroup takes
	TaskType  string
	Signature string // the first line, with placeholders
	Example   string // the error of the latest task
	Count     int    // of the tasks that were looked at
	FirstAt   time.Time
	LastAt    time.Time
	TaskIDs   []string // the latest five, the latest first
}

// Failures groups failed tasks by their errors.
func (c *Client) Failures(ctx context.Context, q FailuresQuery) (*Failures, error) {
	values := url.Values{}
	if q.TaskType != "" {
		values.Set("task_type", q.TaskType)
	}
	if q.Limit != 0 {
		values.Set("limit", strconv.Itoa(q.Limit))
	}
	if q.After != "" {
		values.Set("cursor", q.After)
	}
	var w wire.Failures
	if err := c.get(ctx, "/api/failures?"+values.Encode(), &w); err != nil {
		return nil, fmt.Errorf("group failed tasks: %w", err)
	}
	f := &Failures{Groups: make([]FailureGroup, len(w.Failures)), Count: w.Groups, Looked: w.Looked, Failed: w.Failed, Next: w.NextCursor}
	for i := range w.Failures {
		g := &w.Failures[i]
		f.Groups[i] = FailureGroup{
			Group: g.Group, TaskType: g.TaskType, Signature: g.Signature, Example: g.Example, Count: g.Count, FirstAt: g.FirstAt, LastAt: g.LastAt,
		}
		for _, id := range g.IDs {
			f.Groups[i].TaskIDs = append(f.Groups[i].TaskIDs, formatID(id))
		}
	}
	return f, nil
}
