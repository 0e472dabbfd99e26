package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/internal/repeat"
)

// TypeSettings are the settings of a task type. Pause and limits concern claims
// only: what is claimed goes on. As read nil is what is not set; in SetType nil
// leaves a setting as it is, and each says what clears it.
type TypeSettings struct {
	Paused     *bool    // nothing is claimed, but by id
	MaxClaimed *int     // claims at a time; 0 clears it
	RateLimit  *float64 // claims per second, six decimals; 0 clears it
	// The defaults of the type's tasks.
	Lease       *time.Duration // 0 clears it
	MaxAttempts *int           // UnlimitedAttempts is no limit; 0 clears it
	Backoff     *Backoff       // the zero Backoff clears it
	Retention   *time.Duration // as Task.Retention; 0 clears it
}

// TaskType is a task type as the server sees it.
type TaskType struct {
	Name   string
	Counts map[TaskStatus]int64
	// OldestPendingAge is the age of the pending task that was submitted first, 0
	// if none is pending.
	OldestPendingAge time.Duration
	// SubmittedPerSecond and its like are rates of the last while, as the server
	// measures them.
	SubmittedPerSecond, CompletedPerSecond, FailedPerSecond float64
	Settings                                                TypeSettings
}

// Types returns the task types that have tasks or settings, by name.
func (c *Client) Types(ctx context.Context) ([]TaskType, error) {
	decoded, err := c.typesCall(ctx, Request{Method: http.MethodGet, Path: "/api/types"})
	if err != nil {
		return nil, fmt.Errorf("list types: %w", err)
	}
	types := make([]TaskType, len(decoded.Types))
	for i := range decoded.Types {
		types[i] = typeFromWire(&decoded.Types[i])
	}
	return types, nil
}

// SetType changes the settings of a task type, which need not have tasks yet, and
// returns the type as it is then. When its answer is lost it is repeated with
// the same values.
func (c *Client) SetType(ctx context.Context, taskType string, s TypeSettings) (*TaskType, error) {
	body, err := s.encode()
	if err != nil {
		return nil, fmt.Errorf("set type %q: %w", taskType, err)
	}
	decoded, err := c.typesCall(ctx, Request{
		Method: http.MethodPatch, Path: "/api/types/" + url.PathEscape(taskType), Body: body, Repeatable: repeat.OpSetType.Safe(false),
	})
	if err == nil && decoded.Type == nil {
		err = errors.New("the answer has no type")
	}
	if err != nil {
		return nil, fmt.Errorf("set type %q: %w", taskType, err)
	}
	t := typeFromWire(decoded.Type)
	return &t, nil
}

// ServerDefaults are what a task gets that neither says it itself nor has it from its
// type.
type ServerDefaults struct {
	Lease           time.Duration
	MaxAttempts     int           // UnlimitedAttempts is no limit
	Backoff         *Backoff      // nil: none
	Retention       time.Duration // as Task.Retention
	FailedRetention time.Duration // that of tasks that failed
}

// Defaults returns the server's defaults.
func (c *Client) Defaults(ctx context.Context) (*ServerDefaults, error) {
	d, err := c.defaultsCall(ctx, Request{Method: http.MethodGet, Path: "/api/defaults"})
	if err != nil {
		return nil, fmt.Errorf("get defaults: %w", err)
	}
	return d, nil
}

// SetDefaults changes the server's defaults, for tasks of all types, and returns what they
// are then. Of the settings it takes Lease, MaxAttempts, Backoff and Retention, which say
// what clears them: then what is built in counts. When its answer is lost it is repeated
// with the same values.
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
	}, nil
}

func (c *Client) typesCall(ctx context.Context, r Request) (wire.Types, error) {
	var decoded wire.Types
	a, err := c.call(ctx, r)
	if err != nil {
		return decoded, err
	}
	if err := json.Unmarshal(a.body, &decoded); err != nil {
		return decoded, fmt.Errorf("decode answer: %w", err)
	}
	return decoded, nil
}

// encode is a map: what is not there stays as it is, and null clears.
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
	if s.RateLimit != nil {
		if math.IsNaN(*s.RateLimit) || math.IsInf(*s.RateLimit, 0) {
			return nil, fmt.Errorf("rate limit is %v", *s.RateLimit)
		}
		set("rate_limit", *s.RateLimit == 0, math.Round(*s.RateLimit*1e6)/1e6)
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

func typeFromWire(w *wire.Type) TaskType {
	t := TaskType{
		Name: w.TaskType, Counts: make(map[TaskStatus]int64, len(w.Counts)),
		OldestPendingAge:   time.Duration(w.OldestPendingAgeMS) * time.Millisecond,
		SubmittedPerSecond: w.SubmittedPerS, CompletedPerSecond: w.CompletedPerS, FailedPerSecond: w.FailedPerS,
		Settings: TypeSettings{Paused: &w.Paused, RateLimit: w.RateLimit, Backoff: backoffFromWire(w.Backoff)},
	}
	for status, n := range w.Counts {
		t.Counts[TaskStatus(status)] = n
	}
	s := &t.Settings
	if w.MaxClaimed != nil {
		s.MaxClaimed = new(int(*w.MaxClaimed))
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
