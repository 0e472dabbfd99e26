package callbody

import (
	"math"
	"strconv"

	"github.com/claimq/claimq/api/encode"
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// Type is the body of PATCH /api/types/{type}. null clears a setting.
type Type struct{ cmd command.SetType }

// NewType returns an empty body that sets the type name, for the operator by.
func NewType(name, by string) *Type {
	return &Type{cmd: command.SetType{Type: name, By: by}}
}

func (c *Type) field(d *Decoder, name []byte) (bad *refuse.Refusal) {
	s := &c.cmd.Settings
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
	c.cmd.Set |= set
	return bad
}

func (c *Type) check(d *Decoder) *refuse.Refusal {
	if c.cmd.Set == 0 {
		return &refuse.Refusal{
			Code: d.code, Text: "The body changes nothing",
			Advice: "Send at least one of paused, max_claimed, rate_limit, lease_ms, max_attempts, backoff and retention_ms",
		}
	}
	return nil
}

// Command is that of Body.
func (c *Type) Command() command.Command { return c.cmd }

// Answer is that of Body.
func (c *Type) Answer(b []byte, p *nodes.Proposed) []byte {
	b = append(b, `{"success":true,"type":`...)
	return append(AppendType(b, p.Result.Type), '}')
}

// AppendType appends a task type; a setting that is not set is null.
func AppendType(b []byte, v *fsm.TypeView) []byte {
	s := &v.Settings
	b = append(b, `{"task_type":`...)
	b = jsonout.String(b, v.Type)
	b = AppendTallies(append(b, ','), v)
	b = append(b, `,"paused":`...)
	b = strconv.AppendBool(b, s.Paused)
	b = append(b, `,"max_claimed":`...)
	b = jsonout.IntOrNull(b, s.MaxClaimed != 0, int64(s.MaxClaimed))
	b = append(b, `,"rate_limit":`...)
	if s.RateLimit == 0 {
		b = append(b, "null"...)
	} else {
		b = jsonout.Decimal(b, s.RateLimit)
	}
	b = append(b, `,"lease_ms":`...)
	b = jsonout.IntOrNull(b, s.LeaseMS != 0, s.LeaseMS)
	b = append(b, `,"max_attempts":`...)
	b = jsonout.IntOrNull(b, s.LimitSet, int64(s.MaxAttempts))
	b = append(b, `,"backoff":`...)
	b = encode.BackoffOrNull(b, s.Backoff)
	b = append(b, `,"retention_ms":`...)
	if s.RetentionMS == 0 {
		b = append(b, "null"...)
	} else {
		b = encode.Retention(b, s.RetentionMS)
	}
	return append(b, '}')
}

// AppendTallies appends what is counted of a type, or of all.
func AppendTallies(b []byte, v *fsm.TypeView) []byte {
	b = append(b, `"counts":`...)
	b = encode.Counts(b, &v.Counts)
	b = append(b, `,"oldest_pending_age_ms":`...)
	b = strconv.AppendInt(b, v.OldestPendingAgeMS, 10)
	b = jsonout.Decimal(append(b, `,"submitted_per_s":`...), v.SubmittedPerS)
	b = jsonout.Decimal(append(b, `,"completed_per_s":`...), v.CompletedPerS)
	return jsonout.Decimal(append(b, `,"failed_per_s":`...), v.FailedPerS)
}

// The bounds of a rate_limit, in millionths of a claim per second.
const (
	rateLimitMin = 1
	rateLimitMax = 1_000_000 * jsonout.Micro
)
