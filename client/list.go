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
