package codec

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/internal/cron"
	"github.com/claimq/claimq/internal/zones"
)

// Bounds of a schedule's fields.
const (
	everyMSMin    = 1_000
	everyMSMax    = 31_536_000_000 // 365 days
	cronBytes     = 256
	timezoneBytes = 64
)

const (
	cronAllowed     = `a cron expression of five fields (minute, hour, day of month, month, day of week), as 30 2 * * 1-5, or @hourly, @daily, @weekly, @monthly or @yearly`
	timezoneAllowed = "the name of a time zone in the IANA database, as Europe/Paris"
)

// Schedule is the body of PUT /api/schedules/{name}.
type Schedule struct {
	fsm.Schedule
	task  draft
	some  bool // task was given
	zones *zones.Data
	times *cron.Times // of its plan
}

// DecodeSchedule decodes the body of PUT /api/schedules/{name} with these time zones.
func DecodeSchedule(body []byte, limits *Limits, data *zones.Data) (Schedule, *refuse.Refusal) {
	c := Schedule{task: newDraft(), zones: data}
	c.task.names, c.task.scheduled = scheduledNames, true
	d := NewDecoder(body, limits)
	defer d.Free()
	bad := d.Fields(func(name []byte) *refuse.Refusal { return c.field(d, name) })
	if bad == nil {
		bad = c.check(d)
	}
	c.Task = c.task.NewTask
	return c, bad
}

func (c *Schedule) field(d *Decoder, name []byte) (bad *refuse.Refusal) {
	switch string(name) {
	case "task":
		d.code = wire.CodeInvalidTask
		c.some, bad = d.object("task", func(name []byte) *refuse.Refusal { return d.scheduledField(name, &c.task) })
		d.code = wire.CodeInvalidRequest
	case "cron":
		c.Cron, bad = d.planText("cron", cronAllowed, cronBytes)
	case "timezone":
		c.Timezone, bad = d.planText("timezone", timezoneAllowed, timezoneBytes)
	case "every_ms":
		c.EveryMS, _, bad = d.Integer("every_ms", everyMSMin, everyMSMax)
	case "overlap":
		c.OverlapAllow, bad = d.choice("overlap", "skip", "allow")
	case "catch_up":
		c.CatchUpSkip, bad = d.choice("catch_up", "one", "skip")
	case "paused":
		c.Paused, bad = d.Boolean("paused")
	default:
		bad = unknownOf[wire.NewSchedule](d, name)
	}
	return bad
}

// scheduledField reads one field of the task that a schedule submits, or of a step of it: those of a submit, except
// those that make sense for a single task only.
func (d *Decoder) scheduledField(name []byte, t *draft) *refuse.Refusal {
	if slices.Contains(ofOneTask, string(name)) {
		return d.forbidden(name, "a schedule's task cannot have it", "Remove it: each slot of a schedule submits another task")
	}
	return d.taskField(name, t)
}

// ofOneTask are the fields of a task that make sense for a single task only.
var ofOneTask = optionsNotOf(schedules)

// scheduledNames returns the fields of a schedule's task.
func scheduledNames() []string { return namesBut(reflect.TypeFor[wire.NewTask](), ofOneTask...) }

// scheduledStepNames returns the fields of its steps.
func scheduledStepNames() []string {
	return namesBut(reflect.TypeFor[wire.NewStep](), slices.Concat(notOfSteps, ofOneTask)...)
}

// planText reads a cron expression or the name of a time zone, "" if it is null. It is validated later, together with
// the other fields.
func (d *Decoder) planText(field, allowed string, most int) (string, *refuse.Refusal) {
	return parsed(d, field, allowed, func(s string) (string, bool) { return s, wire.ValidKey(s, most) })
}

// choice reads one of two words; other says that it is the second. null is the first.
func (d *Decoder) choice(field, first, second string) (other bool, bad *refuse.Refusal) {
	return parsed(d, field, `"`+first+`" or "`+second+`"`, func(s string) (other, ok bool) { return s == second, s == second || s == first })
}

func (c *Schedule) check(d *Decoder) *refuse.Refusal {
	if !c.some {
		return d.Missing("task")
	}
	if bad := c.checkTask(d); bad != nil {
		return bad
	}
	var bad *refuse.Refusal
	if c.times, bad = ReadPlan(c.plan(), c.zones); bad != nil {
		return bad
	}
	if c.Timezone == "UTC" {
		c.Timezone = "" // one representation, so that plans compare equal
	}
	return nil
}

// ReadPlan parses the plan of a schedule with these time zones; its fields have been checked one by one.
func ReadPlan(p cron.Plan, data *zones.Data) (*cron.Times, *refuse.Refusal) {
	wrong := func(field, text, advice string) *refuse.Refusal {
		return &refuse.Refusal{Code: wire.CodeInvalidRequest, Field: field, Text: text, Advice: advice}
	}
	switch {
	case p.Cron == "" && p.EveryMS == 0:
		return nil, wrong("cron", "Missing required field: cron or every_ms", "Send exactly one of cron and every_ms")
	case p.Cron != "" && p.EveryMS != 0:
		return nil, wrong("every_ms", "cron and every_ms are both given", "Send exactly one of cron and every_ms")
	case p.Timezone != "" && p.Cron == "":
		return nil, wrong("timezone", "timezone is given without cron", "Send timezone only with cron: every_ms counts from one slot to the next")
	}
	times, err := p.Read(data)
	switch {
	case err == nil:
		return times, nil
	case errors.Is(err, cron.ErrTimezone):
		return nil, refuse.Param("timezone", "Invalid timezone: must be "+timezoneAllowed)
	}
	return nil, wrong("cron", "Invalid cron: "+strings.TrimPrefix(err.Error(), cron.ErrCron.Error()+": "), refuse.AdviceField)
}

// PlanField sets a field of a plan, cron, timezone or every_ms, from its text in a query.
func PlanField(p *cron.Plan, name, value string) *refuse.Refusal {
	switch name {
	case "cron":
		if p.Cron = value; !wire.ValidKey(value, cronBytes) {
			return refuse.Param(name, "Invalid cron: must be "+cronAllowed)
		}
	case "timezone":
		if p.Timezone = value; !wire.ValidKey(value, timezoneBytes) {
			return refuse.Param(name, "Invalid timezone: must be "+timezoneAllowed)
		}
	case "every_ms":
		var ok bool
		if p.EveryMS, ok = wire.ParseInteger(value, everyMSMin, everyMSMax); !ok {
			return refuse.Param(name, fmt.Sprintf("Invalid every_ms: must be an integer from %d to %d", everyMSMin, int64(everyMSMax)))
		}
	}
	return nil
}

// checkTask validates what depends on several fields of the task.
func (c *Schedule) checkTask(d *Decoder) *refuse.Refusal {
	d.enter("task", -1)
	d.code = wire.CodeInvalidTask
	bad := d.checkTask(&c.task)
	d.code = wire.CodeInvalidRequest
	d.leave()
	return bad
}

func (c *Schedule) plan() cron.Plan {
	return cron.Plan{Cron: c.Cron, Timezone: c.Timezone, EveryMS: c.EveryMS}
}

// SetNext sets the slot to wait for, by the leader's clocks. A schedule with an unchanged plan keeps its slot, so
// that one that is set again and again still runs.
func (c *Schedule) SetNext(now fsm.Stamp, before *fsm.ScheduleView) *refuse.Refusal {
	next, ok := c.times.Next(now.T)
	wall := c.times.Wall(next)
	switch {
	case !ok:
		return refuse.New(wire.CodeInvalidRequest, "Invalid cron: its time never comes", refuse.AdviceField).At("cron")
	case c.Paused:
		next = 0
	case before != nil && before.NextRunAt != 0 && before.Cron == c.Cron && before.Timezone == c.Timezone && before.EveryMS == c.EveryMS:
		next, wall = before.NextRunAt, before.NextWall
	}
	if next == 0 {
		wall = 0
	}
	c.NextRunAt, c.NextWall = next, wall
	return nil
}

// AppendSchedules appends the answer with a page of schedules. next is the name after which the next page begins, or ""
// after the last page.
func AppendSchedules(b []byte, views []*fsm.ScheduleView, next string) []byte {
	b = jsonout.List(b, `{"success":true,"schedules":`, len(views), func(b []byte, i int) []byte { return appendSchedule(b, views[i]) })
	return append(jsonout.StringOrNull(b, `,"next":`, next), '}')
}

// AppendSchedule appends the answer with one schedule.
func AppendSchedule(b []byte, v *fsm.ScheduleView) []byte {
	b = append(b, `{"success":true,"schedule":`...)
	return append(appendSchedule(b, v), '}')
}

func appendSchedule(b []byte, v *fsm.ScheduleView) []byte {
	b = jsonout.StringField(b, `{"name":`, v.Name)
	b = appendNewTask(append(b, `,"task":`...), &v.Task)
	if v.Cron != "" {
		b = jsonout.StringField(b, `,"cron":`, v.Cron)
		b = jsonout.StringField(b, `,"every_ms":null,"timezone":`, cmp.Or(v.Timezone, "UTC"))
	} else {
		b = jsonout.IntField(b, `,"cron":null,"every_ms":`, v.EveryMS)
		b = append(b, `,"timezone":null`...)
	}
	b = jsonout.Choice(b, `,"overlap":`, v.OverlapAllow, "skip", "allow")
	b = jsonout.Choice(b, `,"catch_up":`, v.CatchUpSkip, "one", "skip")
	b = jsonout.BoolField(b, `,"paused":`, v.Paused)
	b = jsonout.TimeField(b, `,"next_run_at":`, v.NextRunAt)
	b = jsonout.IntOrNull(b, `,"last_task_id":`, v.LastTaskID != 0, int64(v.LastTaskID))
	b = jsonout.TimeField(b, `,"last_run_at":`, v.LastRunAt)
	b = jsonout.UintField(b, `,"skipped":`, v.Skipped)
	b = jsonout.TimeField(b, `,"created_at":`, v.CreatedAt)
	b = jsonout.TimeField(b, `,"updated_at":`, v.UpdatedAt)
	return append(b, '}')
}

// appendNewTask appends a task as given in a request, without fields that have their defaults.
func appendNewTask(b []byte, t *fsm.NewTask) []byte {
	b = append(b, '{')
	start := len(b)
	b = appendNewFields(b, start, t)
	if t.Parent != nil {
		b = appendNewSteps(jsonout.Comma(b, start), t.Parent)
	}
	return append(b, '}')
}

// appendNewSteps appends the steps of a task as given in a request, and the fields that only such a task has.
func appendNewSteps(b []byte, p *fsm.NewParent) []byte {
	b = jsonout.List(b, `"steps":`, len(p.Steps), func(b []byte, i int) []byte {
		s := &p.Steps[i]
		start := len(b) + 1
		b = jsonout.StringField(b, `{"step":`, s.Name)
		if len(s.DependsOn) > 0 {
			b = jsonout.List(b, `,"depends_on":`, len(s.DependsOn), func(b []byte, on int) []byte { return jsonout.String(b, p.Steps[s.DependsOn[on]].Name) })
		}
		return append(appendNewFields(b, start, &s.Task), '}')
	})
	if p.ByClaim {
		b = jsonout.WordField(b, `,"finalize":`, wire.FinalizeClaim)
	}
	if p.Continue {
		b = jsonout.WordField(b, `,"on_step_failure":`, wire.OnFailureGoOn)
	}
	return b
}

// appendNewFields appends the fields that a task and a step have. The object has begun at start.
func appendNewFields(b []byte, start int, t *fsm.NewTask) []byte {
	name := func(name string) {
		b = append(jsonout.String(jsonout.Comma(b, start), name), ':')
	}
	if t.Type != "default" {
		name("task_type")
		b = jsonout.String(b, t.Type)
	}
	if t.Params != nil {
		name("params")
		b = append(b, t.Params...)
	}
	if t.Payload != nil {
		name("payload")
		b = jsonout.Base64(b, "", t.Payload)
	}
	number := func(field string, n, byDefault int64) {
		if n != byDefault {
			name(field)
			b = strconv.AppendInt(b, n, 10)
		}
	}
	number("priority", int64(t.Priority), 0)
	number("max_attempts", int64(t.MaxAttempts), fsm.DefaultAttempts)
	if t.UniqueActive {
		name("unique")
		b = append(b, `"active"`...)
	}
	if t.AtOnce {
		number("delay_ms", 0, -1)
	}
	number("delay_ms", t.DelayMS, 0)
	number("lease_ms", t.LeaseMS, 0)
	o, before := t.Options(), len(b)
	b = appendOptions(b, &o)
	if before == start && len(b) > before { // they begin with a comma, and are the first fields
		b = slices.Delete(b, before, before+1)
	}
	return b
}
