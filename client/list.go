package client

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/claimq/claimq/api/wire"
)

// listLimit is how many tasks a page has at most. The server stops at 8 MiB of
// payloads, results and errors, which stay below answerBytesMax in base64.
const listLimit = 200

// Filter selects tasks. Zero fields do not filter.
type Filter struct {
	Status                       TaskStatus
	TaskType, WorkerID, ParentID string
	Labels                       map[string]string // each of them must match
	// CreatedAfter and CreatedBefore are exclusive, to the millisecond.
	CreatedAfter, CreatedBefore time.Time
	// ErrorGroup is a FailureGroup.Group: of the failed tasks only those of it.
	ErrorGroup  string
	NewestFirst bool
	// LastEndedFirst is for a Status that is an end, and comes before NewestFirst.
	LastEndedFirst bool
}

func (f Filter) query() url.Values {
	q := url.Values{"include": {"params,result"}, "limit": {strconv.Itoa(listLimit)}}
	set := func(name, value string) {
		if value != "" {
			q.Set(name, value)
		}
	}
	set("status", string(f.Status))
	set("task_type", f.TaskType)
	set("worker_id", f.WorkerID)
	set("parent_id", f.ParentID)
	for _, name := range slices.Sorted(maps.Keys(f.Labels)) {
		q.Add("label", name+":"+f.Labels[name])
	}
	setTime := func(name string, t time.Time) {
		if !t.IsZero() {
			q.Set(name, t.UTC().Format("2006-01-02T15:04:05.000Z"))
		}
	}
	setTime("created_after", f.CreatedAfter)
	setTime("created_before", f.CreatedBefore)
	set("error_group", f.ErrorGroup)
	switch {
	case f.LastEndedFirst:
		q.Set("order", "ended")
	case f.NewestFirst:
		q.Set("order", "desc")
	}
	return q
}

// Tasks walks all tasks that the filter selects, oldest first unless it says otherwise, page by page:
// each page is linearizable, the whole is not one moment. An error ends the
// walk. The tasks have their payloads and results, but no AttemptsLog.
func (c *Client) Tasks(ctx context.Context, f Filter) iter.Seq2[*Task, error] {
	return func(yield func(*Task, error) bool) {
		q := f.query()
		for {
			a, err := c.call(ctx, Request{Method: http.MethodGet, Path: "/api/tasks?" + q.Encode()})
			if err != nil {
				yield(nil, fmt.Errorf("list tasks: %w", err))
				return
			}
			page, err := decodeAnswer(a.body)
			if err != nil {
				yield(nil, fmt.Errorf("list tasks: %w", err))
				return
			}
			for i := range page.Tasks {
				if !yield(fromWire(&page.Tasks[i]), nil) {
					return
				}
			}
			if page.NextCursor == "" {
				return
			}
			q.Set("cursor", page.NextCursor)
		}
	}
}

// List returns all tasks with the status, "" = all, oldest first. It holds them
// all in memory; Tasks does not.
func (c *Client) List(ctx context.Context, status TaskStatus) ([]*Task, error) {
	var tasks []*Task
	for t, err := range c.Tasks(ctx, Filter{Status: status}) {
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, t)
	}
	return tasks, nil
}

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
	if err := c.get(ctx, withQuery("/api/failures", values), &w); err != nil {
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

// WorkerInfo is a worker that holds claims, or was heard from in the last
// minutes.
type WorkerInfo struct {
	ID         string
	Claimed    int       // how many claims it holds
	TaskIDs    []string  // of the first 100 of them
	LastSeenAt time.Time // its last call, as far as this leader knows; zero: unknown
}

// Workers returns who holds claims and who was heard from, by id.
func (c *Client) Workers(ctx context.Context) ([]WorkerInfo, error) {
	var w wire.Workers
	if err := c.get(ctx, "/api/workers", &w); err != nil {
		return nil, fmt.Errorf("list workers: %w", err)
	}
	workers := make([]WorkerInfo, len(w.Workers))
	for i := range w.Workers {
		one := &w.Workers[i]
		workers[i] = WorkerInfo{ID: one.WorkerID, Claimed: one.Claimed, LastSeenAt: timeOf(one.LastSeenAt)}
		for _, id := range one.TaskIDs {
			workers[i].TaskIDs = append(workers[i].TaskIDs, formatID(id))
		}
	}
	return workers, nil
}
