package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"time"

	"github.com/claimq/claimq/api/wire"
)

// Schedule submits a task again and again. The server sets the fields from NextRunAt on; SetSchedule ignores them.
type Schedule struct {
	Name string // 1 to 128 of A-Z a-z 0-9 _ . : -
	// Task is submitted for each slot, with its Steps if it has any. IdempotencyKey, RunAt and ExpiresAt must be empty,
	// those of its steps, too.
	Task Task
	// Cron has five fields, or is @hourly, @daily, ...; Every is at least a second. Set exactly one of them.
	Cron     string
	Timezone string // for Cron: an IANA name; "" is UTC
	Every    time.Duration
	// OverlapAllow submits a task even if the last one has not ended; otherwise the slot is skipped.
	OverlapAllow bool
	// CatchUpSkip skips slots that were missed while there was no leader; otherwise one task is submitted for all of
	// them.
	CatchUpSkip bool
	Paused      bool

	NextRunAt  time.Time // zero: paused, or never runs again
	LastTaskID string    // "": none yet
	LastRunAt  time.Time // the slot of that task
	Skipped    int64     // slots skipped since it was set
	CreatedAt  time.Time
	UpdatedAt  time.Time
}

// SetSchedule creates or replaces the schedule of that name, and returns it. If its answer is lost, it is repeated.
// Errors: ErrInvalidTask, ...
func (c *Client) SetSchedule(ctx context.Context, s Schedule) (*Schedule, error) {
	body, err := s.encode()
	if err != nil {
		return nil, fmt.Errorf("set schedule %q: %w", s.Name, err)
	}
	set, err := c.scheduleCall(ctx, Request{Method: http.MethodPut, Path: schedulePath(s.Name), Body: body, Repeatable: true})
	if err != nil {
		return nil, fmt.Errorf("set schedule %q: %w", s.Name, err)
	}
	return set, nil
}

// GetSchedule returns the schedule of that name. Errors: ErrScheduleNotFound, ...
func (c *Client) GetSchedule(ctx context.Context, name string) (*Schedule, error) {
	s, err := c.scheduleCall(ctx, Request{Method: http.MethodGet, Path: schedulePath(name)})
	if err != nil {
		return nil, fmt.Errorf("get schedule %q: %w", name, err)
	}
	return s, nil
}

// Schedules returns all schedules, by name. It requests page after page, of at most 1,000 schedules and about 8 MiB;
// later pages are as of a later time.
func (c *Client) Schedules(ctx context.Context) ([]Schedule, error) {
	schedules := []Schedule{}
	for query := (url.Values{}); ; {
		var page wire.Schedules
		if err := c.get(ctx, withQuery("/api/schedules", query), &page); err != nil {
			return nil, fmt.Errorf("list schedules: %w", err)
		}
		for i := range page.Schedules {
			schedules = append(schedules, scheduleFromWire(&page.Schedules[i]))
		}
		if page.Next == "" {
			return schedules, nil
		}
		query.Set("after", page.Next)
	}
}

// DeleteSchedule removes the schedule; tasks that it has submitted stay. If its answer is lost it is repeated, and
// then a missing schedule is not an error. Errors: ErrScheduleNotFound, ...
func (c *Client) DeleteSchedule(ctx context.Context, name string) error {
	a, err := c.call(ctx, Request{Method: http.MethodDelete, Path: schedulePath(name), Repeatable: true})
	if a.repeats.Doubted && errors.Is(err, ErrScheduleNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete schedule %q: %w", name, err)
	}
	return nil
}

// SlotsQuery is a plan and the range of its times to return.
type SlotsQuery struct {
	// Set exactly one of Cron and Every, as in Schedule.
	Cron     string
	Timezone string // for Cron: an IANA name; "" is UTC
	Every    time.Duration

	After time.Time // return times after this one; with Every it is the previous slot. Zero: now, by the node's clock
	Limit int       // at most this many; 0: 10
}

// Slots returns the next times of a plan, whether or not a schedule has it; none if it never runs.
func (c *Client) Slots(ctx context.Context, q SlotsQuery) ([]time.Time, error) {
	values := url.Values{}
	for name, value := range map[string]string{"cron": q.Cron, "timezone": q.Timezone} {
		if value != "" {
			values.Set(name, value)
		}
	}
	if q.Every != 0 {
		values.Set("every_ms", strconv.FormatInt(milliseconds(q.Every), 10))
	}
	if !q.After.IsZero() {
		values.Set("after", q.After.UTC().Format(time.RFC3339Nano))
	}
	if q.Limit != 0 {
		values.Set("limit", strconv.Itoa(q.Limit))
	}
	var w wire.Slots
	if err := c.get(ctx, withQuery("/api/slots", values), &w); err != nil {
		return nil, fmt.Errorf("list slots: %w", err)
	}
	return w.Slots, nil
}

func schedulePath(name string) string { return "/api/schedules/" + url.PathEscape(name) }

func (c *Client) scheduleCall(ctx context.Context, r Request) (*Schedule, error) {
	a, err := c.call(ctx, r)
	if err != nil {
		return nil, err
	}
	var decoded wire.Schedules
	if err := json.Unmarshal(a.body, &decoded); err != nil {
		return nil, fmt.Errorf("decode answer: %w", err)
	}
	if decoded.Schedule == nil {
		return nil, errors.New("the answer has no schedule")
	}
	s := scheduleFromWire(decoded.Schedule)
	return &s, nil
}

// encode returns the body of a PUT.
func (s *Schedule) encode() ([]byte, error) {
	task, err := s.Task.encode("")
	if err != nil {
		return nil, err
	}
	w := wire.NewSchedule{
		Cron: s.Cron, Timezone: s.Timezone, EveryMS: milliseconds(s.Every), Paused: s.Paused,
	}
	if s.OverlapAllow {
		w.Overlap = "allow"
	}
	if s.CatchUpSkip {
		w.CatchUp = "skip"
	}
	return withRaw("task", task, w)
}

func scheduleFromWire(w *wire.Schedule) Schedule {
	s := Schedule{
		Name: w.Name, Task: submittedOf(&w.Task), OverlapAllow: w.Overlap == "allow", CatchUpSkip: w.CatchUp == "skip", Paused: w.Paused,
		NextRunAt: timeOf(w.NextRunAt), LastRunAt: timeOf(w.LastRunAt), Skipped: int64(w.Skipped), CreatedAt: w.CreatedAt, UpdatedAt: w.UpdatedAt,
	}
	if w.Cron != nil {
		s.Cron = *w.Cron
	}
	if w.Timezone != nil {
		s.Timezone = *w.Timezone
	}
	if w.EveryMS != nil {
		s.Every = time.Duration(*w.EveryMS) * time.Millisecond
	}
	if w.LastTaskID != nil {
		s.LastTaskID = strconv.FormatUint(*w.LastTaskID, 10)
	}
	return s
}

// submittedOf returns a task to submit, with its steps.
func submittedOf(n *wire.NewTask) Task {
	t := *fromWire(newTaskOf(n))
	t.ID, t.Delay = "", delayFromWire(n.DelayMS)
	if n.MaxAttempts == nil {
		t.MaxAttempts = 0
	}
	for i := range n.Steps {
		s := &n.Steps[i]
		t.AddStep(s.Step, submittedOf(&s.NewTask), s.DependsOn...)
	}
	return t
}

// newTaskOf converts a task to submit into the form in which it would be read: the fields that both have.
func newTaskOf(n *wire.NewTask) *wire.Task {
	var t wire.Task
	for field, value := range reflect.ValueOf(n).Elem().Fields() {
		if to := reflect.ValueOf(&t).Elem().FieldByName(field.Name); to.IsValid() && to.Type() == field.Type {
			to.Set(value)
		}
	}
	if n.MaxAttempts != nil {
		t.MaxAttempts = *n.MaxAttempts
	}
	return &t
}
