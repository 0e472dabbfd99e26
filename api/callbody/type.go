package callbody

import (
	"math"

	"github.com/claimq/claimq/api/encode"
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// Type is the body of PATCH /api/types/{type}. null clears a setting.
type Type struct{ about[command.SetType] }

// NewType returns an empty body that changes the settings of the type name, for the operator by.
func NewType(name, by string) *Type {
	c := &Type{}
	c.Cmd.Type, c.Cmd.By = name, by
	return c
}

func (c *Type) field(d *Decoder, name []byte) (bad *refuse.Refusal) {
	s := &c.Cmd.Settings
	var n int64
	var set fsm.TypeFields
	switch string(name) {
	case "paused":
		set = fsm.TypePaused
		s.Paused, bad = d.Boolean("paused")
	case "max_claimed":
		set = fsm.TypeMaxClaimed
		n, _, bad = d.Integer("max_claimed", 1, math.MaxInt32)
		s.MaxClaimed = int32(n)
	case "rate_limit":
		set = fsm.TypeRateLimit
		s.RateLimit, _, bad = d.decimal("rate_limit", rateLimitMin, rateLimitMax)
	default:
		set, bad = d.defaultField(name, s)
	}
	c.Cmd.Set |= set
	return bad
}

func (c *Type) check(d *Decoder) *refuse.Refusal {
	return d.changes(c.Cmd.Set != 0, "paused, max_claimed, rate_limit, lease_ms, max_attempts, backoff and retention_ms")
}

// Answer implements Body.
func (c *Type) Answer(b []byte, p *nodes.Proposed) []byte {
	b = append(b, `{"success":true,"type":`...)
	return append(AppendType(b, p.Result.Type), '}')
}

// AppendType appends a task type; settings that are not set are null.
func AppendType(b []byte, v *fsm.TypeView) []byte {
	s := &v.Settings
	b = jsonout.StringField(b, `{"task_type":`, v.Type)
	b = AppendTallies(append(b, ','), v)
	b = jsonout.BoolField(b, `,"paused":`, s.Paused)
	b = jsonout.IntOrNull(b, `,"max_claimed":`, s.MaxClaimed != 0, int64(s.MaxClaimed))
	if s.RateLimit == 0 {
		b = jsonout.Null(b, `,"rate_limit":`)
	} else {
		b = jsonout.DecimalField(b, `,"rate_limit":`, s.RateLimit)
	}
	b = jsonout.IntOrNull(b, `,"lease_ms":`, s.LeaseMS != 0, s.LeaseMS)
	b = jsonout.IntOrNull(b, `,"max_attempts":`, s.LimitSet, int64(s.MaxAttempts))
	b = encode.Backoff(b, `,"backoff":`, s.Backoff)
	if s.RetentionMS == 0 {
		b = jsonout.Null(b, `,"retention_ms":`)
	} else {
		b = encode.Retention(b, `,"retention_ms":`, s.RetentionMS)
	}
	return append(b, '}')
}

// AppendTallies appends the numbers of a type, or of all.
func AppendTallies(b []byte, v *fsm.TypeView) []byte {
	b = encode.Counts(b, `"counts":`, &v.Counts)
	b = jsonout.IntField(b, `,"oldest_pending_age_ms":`, v.OldestPendingAgeMS)
	b = jsonout.DecimalField(b, `,"submitted_per_s":`, v.SubmittedPerS)
	b = jsonout.DecimalField(b, `,"completed_per_s":`, v.CompletedPerS)
	return jsonout.DecimalField(b, `,"failed_per_s":`, v.FailedPerS)
}

// Bounds of rate_limit, in millionths of a claim per second.
const (
	rateLimitMin = 1
	rateLimitMax = 1_000_000 * jsonout.Micro
)
