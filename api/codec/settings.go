package codec

import (
	"cmp"
	"math"

	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// Type is the body of PATCH /api/types/{type}. null clears a setting.
type Type struct{ body[command.SetType] }

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
	case "max_claimed_per_key":
		set = fsm.TypeMaxClaimedPerKey
		n, _, bad = d.Integer("max_claimed_per_key", 1, math.MaxInt32)
		s.MaxClaimedPerKey = int32(n)
	case "fair":
		set = fsm.TypeFair
		s.Fair, bad = d.Boolean("fair")
	case "rate_limit":
		set = fsm.TypeRateLimit
		s.RateLimit, _, bad = d.decimal("rate_limit", rateLimitMin, rateLimitMax)
	case "rate_limit_per_key":
		set = fsm.TypeRateLimitPerKey
		s.RateLimitPerKey, _, bad = d.decimal("rate_limit_per_key", rateLimitMin, rateLimitMax)
	case "delay_ms":
		set = fsm.TypeDelay
		s.DelayMS, _, bad = d.Integer("delay_ms", 0, wire.DelayMSMax)
	case "dead_letter":
		set = fsm.TypeDeadLetter
		bad = d.deadLetter(c.Cmd.Type, s)
	default:
		set, bad = d.defaultField(name, s)
	}
	c.Cmd.Set |= set
	return bad
}

// deadLetter reads the dead letters of a type, none if they are null.
func (d *Decoder) deadLetter(of string, s *fsm.TypeSettings) *refuse.Refusal {
	ok, bad := d.object("dead_letter", func(name []byte) (bad *refuse.Refusal) {
		switch string(name) {
		case "task_type":
			if s.DeadLetter, _, bad = d.taskType("task_type"); bad == nil && s.DeadLetter == of {
				bad = d.Invalid("task_type", "another type than "+of)
			}
		case "max_attempts":
			var n int64
			n, _, bad = d.Integer("max_attempts", 1, math.MaxInt32)
			s.DeadLetterAfter = int32(n)
		default:
			bad = unknownOf[wire.DeadLetter](d, name)
		}
		return bad
	})
	if ok && bad == nil && s.DeadLetter == "" {
		d.enter("dead_letter", -1)
		defer d.leave()
		bad = d.Missing("task_type")
	}
	return bad
}

func (c *Type) check(d *Decoder) *refuse.Refusal {
	return d.changes(c.Cmd.Set != 0, "paused, max_claimed, max_claimed_per_key, rate_limit_per_key, fair, rate_limit, delay_ms, dead_letter, lease_ms, max_attempts, backoff and retention_ms")
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
	b = jsonout.IntField(b, `,"oldest_wait_ms":`, v.OldestWaitMS)
	b = jsonout.IntOrNull(b, `,"oldest_pending_id":`, v.OldestPending != 0, int64(v.OldestPending))
	b = jsonout.BoolField(b, `,"paused":`, s.Paused)
	b = jsonout.IntOrNull(b, `,"max_claimed":`, s.MaxClaimed != 0, int64(s.MaxClaimed))
	b = jsonout.IntOrNull(b, `,"max_claimed_per_key":`, s.MaxClaimedPerKey != 0, int64(s.MaxClaimedPerKey))
	b = appendRate(b, `,"rate_limit_per_key":`, s.RateLimitPerKey)
	b = jsonout.BoolField(b, `,"fair":`, s.Fair)
	b = appendRate(b, `,"rate_limit":`, s.RateLimit)
	b = jsonout.IntOrNull(b, `,"delay_ms":`, s.DelayMS != 0, s.DelayMS)
	b = appendDeadLetter(b, s)
	b = jsonout.IntOrNull(b, `,"lease_ms":`, s.LeaseMS != 0, s.LeaseMS)
	b = jsonout.IntOrNull(b, `,"max_attempts":`, s.LimitSet, int64(s.MaxAttempts))
	b = appendBackoff(b, `,"backoff":`, s.Backoff)
	if s.RetentionMS == 0 {
		b = jsonout.Null(b, `,"retention_ms":`)
	} else {
		b = appendRetention(b, `,"retention_ms":`, s.RetentionMS)
	}
	return append(b, '}')
}

// appendRate appends a field with a rate limit, null without one.
func appendRate(b []byte, name string, rate int64) []byte {
	if rate == 0 {
		return jsonout.Null(b, name)
	}
	return jsonout.DecimalField(b, name, rate)
}

func appendDeadLetter(b []byte, s *fsm.TypeSettings) []byte {
	if s.DeadLetter == "" {
		return jsonout.Null(b, `,"dead_letter":`)
	}
	b = jsonout.StringField(b, `,"dead_letter":{"task_type":`, s.DeadLetter)
	if s.DeadLetterAfter != 0 {
		b = jsonout.IntField(b, `,"max_attempts":`, int64(s.DeadLetterAfter))
	}
	return append(b, '}')
}

// AppendTallies appends the numbers of a type, or of all.
func AppendTallies(b []byte, v *fsm.TypeView) []byte {
	b = AppendCounts(b, `"counts":`, &v.Counts)
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

// Share is the body of PUT /api/types/{type}/shares/{share_key}. Settings that it leaves out, or that are null, are the
// type's.
type Share struct{ body[command.SetShare] }

// NewShare returns an empty body that replaces the settings of a share, for the operator by.
func NewShare(taskType, key, by string) *Share {
	c := &Share{}
	c.Cmd.Type, c.Cmd.ShareKey, c.Cmd.By = taskType, key, by
	return c
}

// check refuses a blank body, because a PUT without settings removes those that there are. {} says so.
func (c *Share) check(d *Decoder) *refuse.Refusal {
	if isBlank(d.body) {
		return d.refuse("", "The body is empty", "Send the settings as a JSON object: {} removes those that there are")
	}
	return nil
}

func (c *Share) field(d *Decoder, name []byte) (bad *refuse.Refusal) {
	s := &c.Cmd.Settings
	var n int64
	switch string(name) {
	case "paused":
		s.Paused, bad = d.Boolean("paused")
	case "max_claimed":
		n, _, bad = d.Integer("max_claimed", 1, math.MaxInt32)
		s.MaxClaimed = int32(n)
	case "weight":
		if n, _, bad = d.Integer("weight", 1, wire.WeightMax); n == fsm.ShareWeight {
			n = 0 // as if it were not set
		}
		s.Weight = int32(n)
	case "rate_limit":
		s.RateLimit, _, bad = d.decimal("rate_limit", rateLimitMin, rateLimitMax)
	default:
		bad = unknownOf[wire.ShareSettings](d, name)
	}
	return bad
}

// Answer implements Body.
func (c *Share) Answer(b []byte, p *nodes.Proposed) []byte {
	b = append(b, `{"success":true,"share":`...)
	return append(AppendShare(b, p.Result.Share), '}')
}

// AppendShare appends a share; settings that are not set are null.
func AppendShare(b []byte, v *fsm.ShareView) []byte {
	s := &v.Settings
	b = jsonout.StringField(b, `{"share_key":`, v.Key)
	b = jsonout.IntField(b, `,"pending":`, v.Pending)
	b = jsonout.IntField(b, `,"claimed":`, v.Claimed)
	b = jsonout.IntField(b, `,"oldest_wait_ms":`, v.OldestWaitMS)
	b = jsonout.StringField(b, `,"state":`, v.State.String())
	b = jsonout.TimeField(b, `,"opens_at":`, v.OpensAt)
	b = jsonout.BoolField(b, `,"paused":`, s.Paused)
	b = jsonout.IntOrNull(b, `,"max_claimed":`, s.MaxClaimed != 0, int64(s.MaxClaimed))
	b = jsonout.IntField(b, `,"weight":`, int64(cmp.Or(s.Weight, fsm.ShareWeight)))
	return append(appendRate(b, `,"rate_limit":`, s.RateLimit), '}')
}

// Defaults is the body of PATCH /api/defaults. null clears a default.
type Defaults struct {
	body[command.SetDefaults] // without Defaults
	settings                  fsm.TypeSettings
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
		s.LeaseMS, _, bad = d.Integer("lease_ms", wire.LeaseMSMin, wire.LeaseMSMax)
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
	b = appendBackoff(b, `,"backoff":`, v.Backoff)
	b = appendRetention(b, `,"retention_ms":`, v.RetentionMS)
	b = appendRetention(b, `,"failed_retention_ms":`, v.FailedRetentionMS)
	return append(b, "}}"...)
}

// AppendDefaultsWithLimits appends the answer with the server's defaults and its limits.
func AppendDefaultsWithLimits(b []byte, v *fsm.InForce, l *Limits) []byte {
	b = AppendDefaults(b, v)
	b = jsonout.IntField(b[:len(b)-1], `,"limits":{"body_bytes":`, int64(l.BodyBytes))
	b = jsonout.IntField(b, `,"value_bytes":`, int64(l.ValueBytes))
	b = jsonout.IntField(b, `,"error_bytes":`, int64(l.ErrorBytes))
	b = jsonout.IntField(b, `,"depth":`, int64(l.Depth))
	b = jsonout.IntField(b, `,"items":`, int64(l.Items))
	return append(b, "}}"...)
}

// AppendCounts appends a field with the count of every status.
func AppendCounts(b []byte, name string, counts *[fsm.StatusCancelled + 1]int64) []byte {
	b = append(append(b, name...), '{')
	start := len(b)
	for s := fsm.StatusPending; s <= fsm.StatusCancelled; s++ {
		b = jsonout.String(jsonout.Comma(b, start), s.String())
		b = jsonout.IntField(b, ":", counts[s])
	}
	return append(b, '}')
}
