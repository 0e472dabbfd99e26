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

// listLimit bounds the tasks of a page. The server stops at 8 MiB of payloads, results and errors, which in base64 is
// less than answerBytesMax.
const listLimit = 200

// Filter selects tasks. Zero fields do not filter.
type Filter struct {
	Status                       TaskStatus
	TaskType, WorkerID, ParentID string
	Labels                       map[string]string // all must match
	ShareKey                     string
	// CreatedAfter and CreatedBefore are exclusive, to the millisecond.
	CreatedAfter, CreatedBefore time.Time
	// Contains is a text of up to 256 bytes that the submitted params, or the payload, contain.
	Contains string
	// Params are values in the params, by JSON pointer ("/to", "/order/id"); up to 16. A string is given without
	// quotes, another value as in JSON: ada, 17, true. All must match.
	Params map[string]string
	// ErrorGroup is a FailureGroup.Group; it selects the failed tasks of that group.
	ErrorGroup  string
	NewestFirst bool
	// LastEndedFirst requires a Status that is an end, and overrides NewestFirst.
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
	set("share_key", f.ShareKey)
	setTime := func(name string, t time.Time) {
		if !t.IsZero() {
			q.Set(name, t.UTC().Format("2006-01-02T15:04:05.000Z"))
		}
	}
	setTime("created_after", f.CreatedAfter)
	setTime("created_before", f.CreatedBefore)
	set("contains", f.Contains)
	for _, at := range slices.Sorted(maps.Keys(f.Params)) {
		q.Add("param", at+":"+f.Params[at])
	}
	set("error_group", f.ErrorGroup)
	switch {
	case f.LastEndedFirst:
		q.Set("order", "ended")
	case f.NewestFirst:
		q.Set("order", "desc")
	}
	return q
}

// Tasks returns all tasks that the filter selects, by default oldest first, page by page. Each page is linearizable,
// but pages may show different moments. An error ends the iteration. The tasks have their payloads and results, but
// no AttemptsLog.
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

// List returns all tasks with the status, oldest first; "" selects all. It holds all of them in memory; Tasks does
// not.
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

// FailuresQuery selects failed tasks to group. The zero value selects the latest of all types.
type FailuresQuery struct {
	TaskType   string
	EndedAfter time.Time // exclusive, to the millisecond; zero: all
	Limit      int       // how many groups, the largest first; 0: 100
	After      string    // Failures.Next of the page before
}

// Failures groups failed tasks by type and error: the 10,000 that failed last or, on later pages, the 10,000 before
// those of the previous page.
type Failures struct {
	Groups []FailureGroup // the largest first
	Count  int            // all groups, including those beyond Limit
	Looked int            // tasks that were grouped
	Failed int64          // all failed tasks
	Next   string         // for FailuresQuery.After of the next page; "": this is the last page
}

// FailureGroup is a group of failed tasks of one type. The lines of their errors that say what went wrong differ only in
// numbers, ids and quoted parts.
type FailureGroup struct {
	Group     string // for Filter.ErrorGroup
	TaskType  string
	Signature string // that line, with placeholders
	Example   string // the error of the latest task
	Count     int    // among Failures.Looked tasks
	FirstAt   time.Time
	LastAt    time.Time
	TaskIDs   []string // the latest five, latest first
	// ByHour has how many failed in each of the 24 hours before the answer, the oldest first.
	ByHour []int
}

// Failures groups failed tasks by their errors.
func (c *Client) Failures(ctx context.Context, q FailuresQuery) (*Failures, error) {
	values := url.Values{}
	if q.TaskType != "" {
		values.Set("task_type", q.TaskType)
	}
	if !q.EndedAfter.IsZero() {
		values.Set("ended_after", q.EndedAfter.UTC().Format("2006-01-02T15:04:05.000Z"))
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
			Group: g.Group, TaskType: g.TaskType, Signature: g.Signature, Example: g.Example, Count: g.Count, FirstAt: g.FirstAt, LastAt: g.LastAt, ByHour: g.ByHour,
		}
		for _, id := range g.IDs {
			f.Groups[i].TaskIDs = append(f.Groups[i].TaskIDs, formatID(id))
		}
	}
	return f, nil
}

// WorkerInfo is a worker that holds claims or made a call in the last minutes.
type WorkerInfo struct {
	ID         string
	Claimed    int       // number of claims
	TaskIDs    []string  // of its first 100 claims
	LastSeenAt time.Time // its last call, as far as this leader knows; zero: unknown
}

// Workers returns the workers that hold claims or made a call in the last minutes, by id.
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
