package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/internal/repeat"
)

// TypeSettings are the settings of a task type. Pause and limits affect only new claims. When read, nil means not
// set. In SetType nil leaves a setting unchanged, and each field says how to clear it.
type TypeSettings struct {
	Paused     *bool    // tasks can be claimed only by id
	MaxClaimed *int     // claims at a time; 0 clears it
	RateLimit  *float64 // claims per second, six decimals; 0 clears it
	// Defaults for the type's tasks.
	Lease       *time.Duration // 0 clears it
	MaxAttempts *int           // UnlimitedAttempts: no limit; 0 clears it
	Backoff     *Backoff       // the zero Backoff clears it
	Retention   *time.Duration // as Task.Retention; 0 clears it
	// Delay delays tasks submitted without Task.Delay and Task.RunAt; a RunAt that has passed means at once. 0 clears
	// it.
	Delay *time.Duration
	// DeadLetter says to which type a task is copied when its last attempt has failed. The zero DeadLetter clears it.
	DeadLetter *DeadLetter
	// MaxClaimedPerKey limits the claims at a time of tasks with the same ShareKey; 0 clears it.
	MaxClaimedPerKey *int
	// RateLimitPerKey limits the claims per second of tasks with the same ShareKey, as RateLimit; 0 clears it.
	RateLimitPerKey *float64
	// Fair lets share keys take turns in claims by priority, instead of the oldest task first.
	Fair *bool
}

// DeadLetter says that a task whose last attempt fails, or expires, is submitted again with another type, in the
// same log entry.
type DeadLetter struct {
	TaskType string // another type than the one with this setting
	// MaxAttempts makes that attempt the last one, even if the task may have more. 0: as many as the task may have.
	MaxAttempts int
}

// TaskType is a task type with its numbers and settings.
type TaskType struct {
	Name string
	TypeTallies
	// OldestWait is how long the pending task that was submitted first has been pending since it last became pending:
	// at its submit, at its RunAt, or after an attempt. OldestPendingID is its id, for Client.Why; "" if no task is
	// pending.
	OldestWait      time.Duration
	OldestPendingID string
	Settings        TypeSettings
}

// TypeTallies are numbers of one task type, or of all.
type TypeTallies struct {
	Counts map[TaskStatus]int64
	// OldestPendingAge is the age of the pending task that was submitted first, 0 if none is pending.
	OldestPendingAge time.Duration
	// SubmittedPerSecond, CompletedPerSecond and FailedPerSecond are recent rates, as the server measures them.
	SubmittedPerSecond, CompletedPerSecond, FailedPerSecond float64
}

// TypesQuery selects task types. The zero value selects all, by name.
type TypesQuery struct {
	// Order is name (the default), a status, oldest, submitted_per_s, completed_per_s or failed_per_s. All but name
	// put the largest first.
	Order     string
	Limit     int    // up to 1,000; 0: 1,000
	After     string // TaskTypes.Next of the previous page, in the order name
	Name      string // a part of the name, ignoring case
	Attention bool   // only those that need attention: paused, at their limit, without workers, or failing
}

// TaskTypes is a page of task types.
type TaskTypes struct {
	Types   []TaskType
	Total   int    // all types
	Matched int    // the types that match Name, Attention and After
	Next    string // for TypesQuery.After of the next page in the order name; "": this is the last page
	All     TypeTallies
}

// Types returns the task types that have tasks, settings or rates.
func (c *Client) Types(ctx context.Context, q TypesQuery) (*TaskTypes, error) {
	values := url.Values{}
	if q.Order != "" {
		values.Set("order", q.Order)
	}
	if q.Limit != 0 {
		values.Set("limit", strconv.Itoa(q.Limit))
	}
	if q.After != "" {
		values.Set("after", q.After)
	}
	if q.Name != "" {
		values.Set("name", q.Name)
	}
	if q.Attention {
		values.Set("attention", "true")
	}
	var w wire.Types
	if err := c.get(ctx, withQuery("/api/types", values), &w); err != nil {
		return nil, fmt.Errorf("list types: %w", err)
	}
	types := &TaskTypes{Types: make([]TaskType, len(w.Types)), Total: w.Total, Matched: w.Matched, Next: w.Next}
	for i := range w.Types {
		types.Types[i] = typeFromWire(&w.Types[i])
	}
	if w.All != nil {
		types.All = talliesFromWire(w.All)
	}
	return types, nil
}

// Type returns one task type, even if it has neither tasks nor settings.
func (c *Client) Type(ctx context.Context, taskType string) (*TaskType, error) {
	var w wire.Types
	err := c.get(ctx, "/api/types/"+url.PathEscape(taskType), &w)
	if err == nil && w.Type == nil {
		err = errors.New("the answer has no type")
	}
	if err != nil {
		return nil, fmt.Errorf("get type %q: %w", taskType, err)
	}
	t := typeFromWire(w.Type)
	return &t, nil
}

// SetType changes the settings of a task type, which need not have tasks yet, and returns the type. If its answer is
// lost, it is repeated with the same values.
func (c *Client) SetType(ctx context.Context, taskType string, s TypeSettings) (*TaskType, error) {
	body, err := s.encode()
	if err != nil {
		return nil, fmt.Errorf("set type %q: %w", taskType, err)
	}
	var decoded wire.Types
	a, err := c.call(ctx, Request{
		Method: http.MethodPatch, Path: "/api/types/" + url.PathEscape(taskType), Body: body, Repeatable: repeat.OpSetType.Safe(false),
	})
	if err == nil {
		err = json.Unmarshal(a.body, &decoded)
	}
	if err == nil && decoded.Type == nil {
		err = errors.New("the answer has no type")
	}
	if err != nil {
		return nil, fmt.Errorf("set type %q: %w", taskType, err)
	}
	t := typeFromWire(decoded.Type)
	return &t, nil
}

// ServerDefaults are the settings for tasks that get them neither from themselves nor from their type.
type ServerDefaults struct {
	Lease           time.Duration
	MaxAttempts     int           // UnlimitedAttempts: no limit
	Backoff         *Backoff      // nil: none
	Retention       time.Duration // as Task.Retention
	FailedRetention time.Duration // for failed tasks
	// Limits are the nodes' limits. nil: they are of an earlier version, or it is the answer of SetDefaults.
	Limits *Limits
}

// Limits bound what a request may carry; the nodes' configuration has them, as limits.*.
type Limits struct {
	BodyBytes  int // of a request's body
	ValueBytes int // of a payload and of a result, each
	ErrorBytes int // of an attempt's error, which is cut there
	Depth      int // levels of nested JSON, those of the request counted
	Items      int // tasks or operations of one request
}

// Defaults returns the server's defaults.
func (c *Client) Defaults(ctx context.Context) (*ServerDefaults, error) {
	d, err := c.defaultsCall(ctx, Request{Method: http.MethodGet, Path: "/api/defaults"})
	if err != nil {
		return nil, fmt.Errorf("get defaults: %w", err)
	}
	return d, nil
}

// SetDefaults changes the server's defaults for tasks of all types, and returns them. It uses the fields Lease,
// MaxAttempts, Backoff and Retention of s; a cleared one returns to its built-in value. If its answer is lost, it is
// repeated with the same values.
func (c *Client) SetDefaults(ctx context.Context, s TypeSettings) (*ServerDefaults, error) {
	body, err := s.encode()
	var d *ServerDefaults
	if err == nil {
		d, err = c.defaultsCall(ctx, Request{Method: http.MethodPatch, Path: "/api/defaults", Body: body, Repeatable: repeat.OpSetType.Safe(false)})
	}
	if err != nil {
		return nil, fmt.Errorf("set defaults: %w", err)
	}
	return d, nil
}

func (c *Client) defaultsCall(ctx context.Context, r Request) (*ServerDefaults, error) {
	a, err := c.call(ctx, r)
	if err != nil {
		return nil, err
	}
	var decoded wire.Defaults
	if err := json.Unmarshal(a.body, &decoded); err != nil {
		return nil, fmt.Errorf("decode answer: %w", err)
	}
	w := &decoded.Defaults
	return &ServerDefaults{
		Lease: time.Duration(w.LeaseMS) * time.Millisecond, MaxAttempts: attemptsFromWire(w.MaxAttempts), Backoff: backoffFromWire(w.Backoff),
		Retention: retentionFromWire(&w.RetentionMS), FailedRetention: retentionFromWire(&w.FailedRetentionMS),
		Limits: limitsFromWire(decoded.Limits),
	}, nil
}

func limitsFromWire(w *wire.Limits) *Limits {
	if w == nil {
		return nil
	}
	return &Limits{BodyBytes: w.BodyBytes, ValueBytes: w.ValueBytes, ErrorBytes: w.ErrorBytes, Depth: w.Depth, Items: w.Items}
}

// encode uses a map so that absent fields do not change, and null clears one.
func (s *TypeSettings) encode() ([]byte, error) {
	fields := map[string]any{}
	set := func(name string, cleared bool, value any) {
		if cleared {
			value = nil
		}
		fields[name] = value
	}
	if s.Paused != nil {
		fields["paused"] = *s.Paused
	}
	if s.MaxClaimed != nil {
		set("max_claimed", *s.MaxClaimed == 0, *s.MaxClaimed)
	}
	if s.MaxClaimedPerKey != nil {
		set("max_claimed_per_key", *s.MaxClaimedPerKey == 0, *s.MaxClaimedPerKey)
	}
	if s.Fair != nil {
		fields["fair"] = *s.Fair
	}
	for _, r := range []struct {
		name  string
		value *float64
	}{{"rate_limit", s.RateLimit}, {"rate_limit_per_key", s.RateLimitPerKey}} {
		switch {
		case r.value == nil:
		case math.IsNaN(*r.value) || math.IsInf(*r.value, 0):
			return nil, fmt.Errorf("%s is %v", r.name, *r.value)
		default:
			set(r.name, *r.value == 0, math.Round(*r.value*1e6)/1e6)
		}
	}
	if s.Delay != nil {
		set("delay_ms", *s.Delay == 0, milliseconds(*s.Delay))
	}
	if d := s.DeadLetter; d != nil {
		if d.MaxAttempts < 0 || d.MaxAttempts > math.MaxInt32 {
			return nil, fmt.Errorf("dead letter: max attempts is %d, it must be 1 to %d, or 0", d.MaxAttempts, math.MaxInt32)
		}
		set("dead_letter", *d == DeadLetter{}, wire.DeadLetter{TaskType: d.TaskType, MaxAttempts: int32(d.MaxAttempts)})
	}
	if s.Lease != nil {
		set("lease_ms", *s.Lease == 0, milliseconds(*s.Lease))
	}
	if s.MaxAttempts != nil {
		if err := checkAttempts(*s.MaxAttempts); err != nil {
			return nil, err
		}
		set("max_attempts", *s.MaxAttempts == 0, wireAttempts(*s.MaxAttempts))
	}
	if s.Backoff != nil {
		cleared := *s.Backoff == Backoff{}
		if err := s.Backoff.check(); err != nil && !cleared {
			return nil, err
		}
		set("backoff", cleared, s.Backoff.wire())
	}
	if s.Retention != nil {
		if *s.Retention < KeepNone {
			return nil, fmt.Errorf("retention %v is negative", *s.Retention)
		}
		fields["retention_ms"] = wireRetention(*s.Retention)
	}
	return json.Marshal(fields)
}

func talliesFromWire(w *wire.TypeTallies) TypeTallies {
	t := TypeTallies{
		Counts: make(map[TaskStatus]int64, len(w.Counts)), OldestPendingAge: time.Duration(w.OldestPendingAgeMS) * time.Millisecond,
		SubmittedPerSecond: w.SubmittedPerS, CompletedPerSecond: w.CompletedPerS, FailedPerSecond: w.FailedPerS,
	}
	for status, n := range w.Counts {
		t.Counts[TaskStatus(status)] = n
	}
	return t
}

func typeFromWire(w *wire.Type) TaskType {
	t := TaskType{
		Name: w.TaskType, TypeTallies: talliesFromWire(&w.TypeTallies),
		Settings: TypeSettings{Paused: &w.Paused, Fair: &w.Fair, RateLimit: w.RateLimit, RateLimitPerKey: w.RateLimitPerKey, Backoff: backoffFromWire(w.Backoff)},
	}
	t.OldestWait = time.Duration(w.OldestWaitMS) * time.Millisecond
	if w.OldestPendingID != nil {
		t.OldestPendingID = strconv.FormatUint(*w.OldestPendingID, 10)
	}
	s := &t.Settings
	if w.MaxClaimed != nil {
		s.MaxClaimed = new(int(*w.MaxClaimed))
	}
	if w.MaxClaimedPerKey != nil {
		s.MaxClaimedPerKey = new(int(*w.MaxClaimedPerKey))
	}
	if w.DelayMS != nil {
		s.Delay = new(time.Duration(*w.DelayMS) * time.Millisecond)
	}
	if d := w.DeadLetter; d != nil {
		s.DeadLetter = &DeadLetter{d.TaskType, int(d.MaxAttempts)}
	}
	if w.LeaseMS != nil {
		s.Lease = new(time.Duration(*w.LeaseMS) * time.Millisecond)
	}
	if w.MaxAttempts != nil {
		s.MaxAttempts = new(attemptsFromWire(*w.MaxAttempts))
	}
	if w.RetentionMS != nil {
		s.Retention = new(retentionFromWire(w.RetentionMS))
	}
	return t
}

// HistoryQuery selects a history. The zero value selects the last hour of all tasks.
type HistoryQuery struct {
	TaskType string
	Last     time.Duration // in whole minutes up to 6 h; 0: an hour
}

// History holds numbers of the last hours. They are part of the cluster's state, so every node answers with the same.
type History struct {
	Interval time.Duration
	Since    time.Time // the beginning of the first interval ever; zero: nothing was submitted yet
	To       time.Time // the end of the last interval, which is under way
	Kept     bool      // false: the type has no history
	Points   []HistoryPoint
}

// HistoryPoint covers one interval.
type HistoryPoint struct {
	From time.Time
	// Submitted, Completed and Failed count tasks during the interval; Pending and Claimed are the numbers at its
	// end.
	Submitted, Completed, Failed int64
	Pending, Claimed             int64
	OldestPendingAge             time.Duration // 0 if none was pending
	// Waited is the time that the tasks claimed in the interval had been pending, Ran the time that those completed
	// in it had been claimed; nil without such tasks.
	Waited, Ran *Quantiles
}

// Quantiles are the median and the 99th percentile, accurate to about an eighth.
type Quantiles struct{ P50, P99 time.Duration }

// History returns numbers of the last hours, up to and including the current minute.
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
	if err == nil && (!w.Even() || (w.From == nil || w.To == nil) && len(w.Submitted) > 0) {
		err = errors.New("the answer's arrays are not of the same intervals")
	}
	if err != nil {
		return nil, fmt.Errorf("get history: %w", err)
	}
	h := &History{Interval: time.Duration(w.IntervalMS) * time.Millisecond, Kept: w.Kept, Points: make([]HistoryPoint, len(w.Submitted))}
	if w.Since != nil {
		h.Since = *w.Since
	}
	if w.To != nil {
		h.To = *w.To
	}
	for i := range h.Points {
		p := &h.Points[i]
		p.From = w.From.Add(time.Duration(i) * h.Interval)
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
