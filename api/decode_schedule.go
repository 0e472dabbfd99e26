package api

import (
	"errors"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/internal/cron"
)

// The bounds of a schedule's fields.
const (
	everyMSMin    = 1_000
	everyMSMax    = 31_536_000_000 // 365 days
	cronBytes     = 256
	timezoneBytes = 64
)

const (
	cronAllowed     = `a cron expression of five fields (minute, hour, day of month, month, day of week), as 30 2 * * 1-5, or @hourly, @daily, @weekly, @monthly or @yearly,`
	timezoneAllowed = "the name of a time zone in the IANA database, as Europe/Paris,"
)

// scheduleBody is the body of PUT /api/schedules/{name}.
type scheduleBody struct {
	fsm.Schedule
	task draft
	some bool // task was given
}

// decodeSchedule reads the body of PUT /api/schedules/{name}.
func decodeSchedule(body []byte, limits *Limits) (scheduleBody, *refusal) {
	c := scheduleBody{task: newDraft()}
	d := newDecoder(body, limits)
	defer d.free()
	bad := d.fields(func(name []byte) *refusal { return c.field(d, name) })
	if bad == nil {
		bad = c.check(d)
	}
	c.Task = c.task.NewTask
	return c, bad
}

func (c *scheduleBody) field(d *decoder, name []byte) (bad *refusal) {
	switch string(name) {
	case "task":
		d.code = wire.CodeInvalidTask
		c.some, bad = d.object("task", func(name []byte) *refusal { return d.scheduledField(name, &c.task) })
		d.code = wire.CodeInvalidRequest
	case "cron":
		c.Cron, bad = d.planText("cron", cronAllowed, cronBytes)
	case "timezone":
		c.Timezone, bad = d.planText("timezone", timezoneAllowed, timezoneBytes)
	case "every_ms":
		c.EveryMS, _, bad = d.integer("every_ms", everyMSMin, everyMSMax)
	case "overlap":
		c.OverlapAllow, bad = d.choice("overlap", "skip", "allow")
	case "catch_up":
		c.CatchUpSkip, bad = d.choice("catch_up", "one", "skip")
	case "paused":
		c.Paused, bad = d.boolean("paused")
	default:
		bad = d.unknown(name)
	}
	return bad
}

// scheduledField reads one field of the task that a schedule submits: those of a
// submit, but for what can only be said of one task.
func (d *decoder) scheduledField(name []byte, t *draft) *refusal {
	switch string(name) {
	case "idempotency_key", "run_at", "expires_at":
		return d.forbidden(name, "a schedule's task cannot have it", "Remove it: each slot of a schedule submits another task")
	case "steps", "finalize", "on_step_failure":
		return d.unknown(name)
	}
	return d.taskField(name, t)
}

// planText reads a cron expression or the name of a time zone, "" if it is null.
// Whether it is one is checked with the others.
func (d *decoder) planText(field, allowed string, most int) (string, *refusal) {
	s, ok, bad := d.text(field, allowed)
	if !ok || bad != nil {
		return "", bad
	}
	if !validKey(s, most) {
		return "", d.invalid(field, allowed)
	}
	return string(s), nil
}

// choice reads one of two words; other says that it is the second. null is the
// first.
func (d *decoder) choice(field, first, second string) (other bool, bad *refusal) {
	allowed := `"` + first + `" or "` + second + `"`
	s, ok, bad := d.text(field, allowed)
	if !ok || bad != nil {
		return false, bad
	}
	other = string(s) == second
	if !other && string(s) != first {
		return false, d.invalid(field, allowed)
	}
	return other, nil
}

func (c *scheduleBody) check(d *decoder) *refusal {
	wrong := func(field, text, advice string) *refusal {
		return &refusal{code: d.code, field: field, text: text, advice: advice}
	}
	switch {
	case !c.some:
		return d.missing("task")
	case c.Cron == "" && c.EveryMS == 0:
		return wrong("cron", "Missing required field: cron or every_ms", "Send exactly one of cron and every_ms")
	case c.Cron != "" && c.EveryMS != 0:
		return wrong("every_ms", "cron and every_ms are both given", "Send exactly one of cron and every_ms")
	case c.Timezone != "" && c.Cron == "":
		return wrong("timezone", "timezone is given without cron", "Send timezone only with cron: every_ms counts from one slot to the next")
	}
	if bad := c.checkTask(d); bad != nil {
		return bad
	}
	if c.Timezone == "UTC" {
		c.Timezone = "" // one way to say it, so that it is no other plan
	}
	err := c.plan().Check()
	switch {
	case err == nil:
		return nil
	case errors.Is(err, cron.ErrTimezone):
		return d.invalid("timezone", timezoneAllowed)
	}
	return d.invalid("cron", cronAllowed)
}

// checkTask checks what one field of the task alone does not show.
func (c *scheduleBody) checkTask(d *decoder) *refusal {
	d.enter("task", -1)
	d.code = wire.CodeInvalidTask
	bad := d.checkTask(&c.task)
	d.code = wire.CodeInvalidRequest
	d.leave()
	return bad
}

func (c *scheduleBody) plan() cron.Plan {
	return cron.Plan{Cron: c.Cron, Timezone: c.Timezone, EveryMS: c.EveryMS}
}

// setNext sets the slot to wait for, by the leader's clocks. A schedule that
// goes on as it did before keeps the slot that it waits for: so one that is set
// again and again still runs.
func (c *scheduleBody) setNext(now fsm.Stamp, before *fsm.ScheduleView) *refusal {
	next, ok := c.plan().Next(now.T)
	switch {
	case !ok:
		return &refusal{
			code: wire.CodeInvalidRequest, field: "cron", text: "Invalid cron: its time never comes",
			advice: adviceField,
		}
	case c.Paused:
		next = 0
	case before != nil && before.NextRunAt != 0 && before.Cron == c.Cron && before.Timezone == c.Timezone && before.EveryMS == c.EveryMS:
		next = before.NextRunAt
	}
	c.NextRunAt = next
	return nil
}
