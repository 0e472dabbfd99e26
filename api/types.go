package api

import (
	"math"
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/fsm"
)

// types answers GET /api/types.
func (r *request) types() {
	if bad := refuseQuery(r.query); bad != nil {
		r.refuse(bad)
		return
	}
	var views []fsm.TypeView
	if !r.read(func(m *fsm.Machine, now fsm.Stamp) { views = m.Types(now) }) {
		return
	}
	b := append(r.body(), `{"success":true,"types":[`...)
	start := len(b)
	for i := range views {
		if !r.maySee(views[i].Type) {
			continue
		}
		b = comma(b, start)
		b = appendType(b, &views[i])
	}
	r.send(fasthttp.StatusOK, append(b, "]}"...))
}

// setType answers PATCH /api/types/{type}.
func (r *request) setType() {
	name, ok := unescape(r.target.rest, false)
	if !ok || !validTaskType(name) {
		r.refuse(badParam("task_type", taskTypeAllowed))
		return
	}
	r.act(&typeBody{cmd: fsm.SetType{Type: name, By: r.by()}})
}

// The bounds of a rate_limit, in millionths of a claim per second.
const (
	rateLimitMin = 1
	rateLimitMax = 1_000_000 * micro
)

// typeBody is the body of PATCH /api/types/{type}. null clears a setting.
type typeBody struct{ cmd fsm.SetType }

func (c *typeBody) field(d *decoder, name []byte) (bad *refusal) {
	s := &c.cmd.Settings
	var n int64
	var set fsm.TypeFields
	switch string(name) {
	case "paused":
		set = fsm.TypePaused
		s.Paused, bad = d.boolean("paused")
	case "max_claimed":
		set = fsm.TypeMaxClaimed
		n, _, bad = d.integer("max_claimed", 1, math.MaxInt32)
		s.MaxClaimed = int32(n)
	case "rate_limit":
		set = fsm.TypeRateLimit
		s.RateLimit, _, bad = d.decimal("rate_limit", rateLimitMin, rateLimitMax)
	case "lease_ms":
		set = fsm.TypeLease
		s.LeaseMS, _, bad = d.integer("lease_ms", leaseMSMin, leaseMSMax)
	case "max_attempts":
		set = fsm.TypeMaxAttempts
		n, s.LimitSet, bad = d.integer("max_attempts", 0, math.MaxInt32)
		s.MaxAttempts = int32(n)
	case "backoff":
		set = fsm.TypeBackoff
		s.Backoff, bad = d.backoff()
	case "retention_ms":
		set = fsm.TypeRetention
		s.RetentionMS, _, bad = d.retention()
	default:
		bad = d.unknown(name)
	}
	c.cmd.Set |= set
	return bad
}

func (c *typeBody) check(d *decoder) *refusal {
	if c.cmd.Set == 0 {
		return &refusal{
			code: d.code, text: "The body changes nothing",
			advice: "Send at least one of paused, max_claimed, rate_limit, lease_ms, max_attempts, backoff and retention_ms",
		}
	}
	return nil
}

func (c *typeBody) command() fsm.Command { return c.cmd }

func (c *typeBody) answer(b []byte, p *fsm.Proposed) []byte {
	b = append(b, `{"success":true,"type":`...)
	return append(appendType(b, p.Result.Type), '}')
}

// appendType appends a task type; a setting that is not set is null.
func appendType(b []byte, v *fsm.TypeView) []byte {
	s := &v.Settings
	b = append(b, `{"task_type":`...)
	b = appendString(b, v.Type)
	b = append(b, `,"counts":`...)
	b = appendCounts(b, &v.Counts)
	b = append(b, `,"oldest_pending_age_ms":`...)
	b = strconv.AppendInt(b, v.OldestPendingAgeMS, 10)
	b = appendDecimal(append(b, `,"submitted_per_s":`...), v.SubmittedPerS)
	b = appendDecimal(append(b, `,"completed_per_s":`...), v.CompletedPerS)
	b = appendDecimal(append(b, `,"failed_per_s":`...), v.FailedPerS)
	b = append(b, `,"paused":`...)
	b = strconv.AppendBool(b, s.Paused)
	b = append(b, `,"max_claimed":`...)
	b = appendSetting(b, s.MaxClaimed != 0, int64(s.MaxClaimed))
	b = append(b, `,"rate_limit":`...)
	if s.RateLimit == 0 {
		b = append(b, "null"...)
	} else {
		b = appendDecimal(b, s.RateLimit)
	}
	b = append(b, `,"lease_ms":`...)
	b = appendSetting(b, s.LeaseMS != 0, s.LeaseMS)
	b = append(b, `,"max_attempts":`...)
	b = appendSetting(b, s.LimitSet, int64(s.MaxAttempts))
	b = append(b, `,"backoff":`...)
	if s.Backoff == nil {
		b = append(b, "null"...)
	} else {
		b = appendBackoff(b, s.Backoff)
	}
	b = append(b, `,"retention_ms":`...)
	if s.RetentionMS == 0 {
		b = append(b, "null"...)
	} else {
		b = appendRetention(b, s.RetentionMS)
	}
	return append(b, '}')
}

// appendSetting appends an integer, or null if it is not set.
func appendSetting(b []byte, set bool, n int64) []byte {
	if !set {
		return append(b, "null"...)
	}
	return strconv.AppendInt(b, n, 10)
}
