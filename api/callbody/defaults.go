package callbody

import (
	"math"

	"github.com/claimq/claimq/api/bound"
	"github.com/claimq/claimq/api/encode"
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// Defaults is the body of PATCH /api/defaults. null clears a default.
type Defaults struct {
	about[command.SetDefaults] // without Defaults
	settings                   fsm.TypeSettings
}

// NewDefaults returns an empty body, for the operator by.
func NewDefaults(by string) *Defaults {
	c := &Defaults{}
	c.Cmd.By = by
	return c
}

func (c *Defaults) field(d *Decoder, name []byte) *refuse.Refusal {
	set, bad := d.defaultField(name, &c.settings)
	c.Cmd.Set |= set
	return bad
}

// defaultField reads the default name into s and returns its bit.
func (d *Decoder) defaultField(name []byte, s *fsm.TypeSettings) (set fsm.TypeFields, bad *refuse.Refusal) {
	switch string(name) {
	case "lease_ms":
		set = fsm.TypeLease
		s.LeaseMS, _, bad = d.Integer("lease_ms", bound.LeaseMSMin, bound.LeaseMSMax)
	case "max_attempts":
		set = fsm.TypeMaxAttempts
		var n int64
		n, s.LimitSet, bad = d.Integer("max_attempts", 0, math.MaxInt32)
		s.MaxAttempts = int32(n)
	case "backoff":
		set = fsm.TypeBackoff
		s.Backoff, bad = d.backoff()
	case "retention_ms":
		set = fsm.TypeRetention
		s.RetentionMS, _, bad = d.retention()
	default:
		bad = d.Unknown(name)
	}
	return set, bad
}

func (c *Defaults) check(d *Decoder) *refuse.Refusal {
	return d.changes(c.Cmd.Set != 0, "lease_ms, max_attempts, backoff and retention_ms")
}

// Command implements Body.
func (c *Defaults) Command() command.Command {
	cmd := c.Cmd
	cmd.Defaults = fsm.DefaultsOf(&c.settings)
	return cmd
}

// Answer implements Body.
func (c *Defaults) Answer(b []byte, p *nodes.Proposed) []byte {
	return AppendDefaults(b, p.Result.Defaults)
}

// AppendDefaults appends the answer with the server's defaults.
func AppendDefaults(b []byte, v *fsm.InForce) []byte {
	b = jsonout.IntField(b, `{"success":true,"defaults":{"lease_ms":`, v.LeaseMS)
	b = jsonout.IntField(b, `,"max_attempts":`, int64(v.MaxAttempts))
	b = encode.Backoff(b, `,"backoff":`, v.Backoff)
	b = encode.Retention(b, `,"retention_ms":`, v.RetentionMS)
	b = encode.Retention(b, `,"failed_retention_ms":`, v.FailedRetentionMS)
	return append(b, "}}"...)
}

// AppendDefaultsWithLimits appends the answer with the server's defaults and its limits.
func AppendDefaultsWithLimits(b []byte, v *fsm.InForce, l *bound.Limits) []byte {
	b = AppendDefaults(b, v)
	b = jsonout.IntField(b[:len(b)-1], `,"limits":{"body_bytes":`, int64(l.BodyBytes))
	b = jsonout.IntField(b, `,"value_bytes":`, int64(l.ValueBytes))
	b = jsonout.IntField(b, `,"error_bytes":`, int64(l.ErrorBytes))
	b = jsonout.IntField(b, `,"depth":`, int64(l.Depth))
	b = jsonout.IntField(b, `,"items":`, int64(l.Items))
	return append(b, "}}"...)
}
