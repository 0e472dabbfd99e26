package api

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/callbody"
	"github.com/claimq/claimq/api/encode"
	"github.com/claimq/claimq/api/exchange"
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/cron"
)

// schedulesBytes bounds the size of a page of schedules. A page has at least one.
const schedulesBytes = 8 << 20

// scheduleBytes is the approximate size of a schedule in an answer, without its users' own data.
const scheduleBytes = 1 << 10

// Schedules answers GET /api/schedules: a page of them, by name.
func Schedules(r *exchange.Request) {
	after, limit := "", r.Server.Cfg.Limits.Items
	bad := r.ReadParams(exchange.Params{
		"after": typeParam(&after),
		"limit": countParam(&limit, r.Server.Cfg.Limits.Items),
	})
	if bad != nil {
		r.Refuse(bad)
		return
	}
	var all []*fsm.ScheduleView
	if !r.Read(func(m *fsm.Machine, _ fsm.Stamp) { all = slices.Clone(m.Schedules()) }) {
		return
	}
	page, size, next := all[:0], 0, ""
	for _, v := range all {
		if v.Name <= after || !r.MaySee(v.Task.Type) {
			continue
		}
		n := sizeOfSchedule(v)
		if len(page) == limit || len(page) > 0 && size+n > schedulesBytes {
			next = page[len(page)-1].Name
			break
		}
		page, size = append(page, v), size+n
	}
	if r.RoomFor(size) {
		r.Send(fasthttp.StatusOK, encode.Schedules(r.Body(), page, next))
	}
}

// sizeOfSchedule returns the approximate size of a schedule in an answer.
func sizeOfSchedule(v *fsm.ScheduleView) int {
	n := scheduleBytes + len(v.Task.Params) + len(v.Task.Payload)/3*4 + len(v.Task.Group)
	for _, l := range v.Task.Labels {
		n += len(l.Name) + len(l.Value)
	}
	return n
}

// Schedule answers GET /api/schedules/{name}.
func Schedule(r *exchange.Request) {
	name, ok := pathType(r, "name")
	if !ok {
		return
	}
	if !r.NoParams() {
		return
	}
	var view *fsm.ScheduleView
	switch ok := r.Read(func(m *fsm.Machine, _ fsm.Stamp) { view = m.Schedule(name) }); {
	case !ok:
	case view == nil, !r.MaySee(view.Task.Type):
		r.Refuse(refuse.Because(wire.CodeScheduleNotFound))
	default:
		r.Send(fasthttp.StatusOK, encode.ScheduleAnswer(r.Body(), view))
	}
}

// Bounds of GET /api/slots.
const (
	slotsLimit    = 10
	slotsLimitMax = 100
)

// Slots answers GET /api/slots with the next times of a plan, which need not belong to a schedule.
func Slots(r *exchange.Request) {
	after, limit := time.Now().UnixMilli(), slotsLimit
	times, bad := parseSlots(r, &after, &limit)
	if bad != nil {
		r.Refuse(bad)
		return
	}
	if !r.TakeTurn() {
		return
	}
	b := append(r.Body(), `{"success":true,"slots":[`...)
	for i := range limit {
		var ok bool
		if after, ok = times.Next(after); !ok {
			break
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = jsonout.Time(b, after)
	}
	r.Send(fasthttp.StatusOK, append(b, "]}"...))
}

// parseSlots reads the query of GET /api/slots.
func parseSlots(r *exchange.Request, after *int64, limit *int) (*cron.Times, *refuse.Refusal) {
	var plan cron.Plan
	planned := func(p exchange.Param) *refuse.Refusal { return callbody.PlanField(&plan, p.Name, p.Value) }
	bad := r.ReadParams(exchange.Params{
		"cron": planned, "timezone": planned, "every_ms": planned,
		"after": createdParam(after, false), "limit": countParam(limit, slotsLimitMax),
	})
	if bad != nil {
		return nil, bad
	}
	return callbody.ReadPlan(plan, r.Server.Cfg.Zones.Current())
}

// SetSchedule answers PUT /api/schedules/{name}.
func SetSchedule(r *exchange.Request) {
	name, ok := pathType(r, "name")
	if !ok {
		return
	}
	c, bad := callbody.DecodeSchedule(r.HTTP.Request.Body(), &r.Server.Cfg.Limits, r.Server.Cfg.Zones.Current())
	if bad != nil {
		r.Refuse(bad)
		return
	}
	c.Name = name
	now, before, level, ok := readSchedule(r, name)
	if !ok {
		return
	}
	if bad := c.SetNext(now, before, level); bad != nil {
		r.Refuse(bad)
		return
	}
	p, ok := r.ProposeTask(command.SetSchedule{Schedule: c.Schedule, By: r.By()})
	if !ok {
		return
	}
	status := fasthttp.StatusOK
	if p.Result.Created {
		status = fasthttp.StatusCreated
	}
	r.Send(status, encode.ScheduleAnswer(r.Body(), p.Result.Schedule))
}

// DeleteSchedule answers DELETE /api/schedules/{name}.
func DeleteSchedule(r *exchange.Request) {
	name, ok := pathType(r, "name")
	if !ok {
		return
	}
	if _, ok := r.ProposeTask(command.DeleteSchedule{Name: name, By: r.By()}); ok {
		r.Send(fasthttp.StatusOK, append(r.Body(), `{"success":true,"deleted":1}`...))
	}
}

// readSchedule returns the leader's clocks, the schedule before the change (nil if there was none), and the feature
// level. ok is false if the request was already answered; then nothing was written.
func readSchedule(r *exchange.Request, name string) (now fsm.Stamp, before *fsm.ScheduleView, level uint32, ok bool) {
	_, err := r.Server.Node.ReadLinearizable(r.Wait(), 0, func(m *fsm.Machine, stamp fsm.Stamp) {
		now, before, level = stamp, m.Schedule(name), m.Level()
	})
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		r.Refuse(refuse.Because(wire.CodeOverloaded))
	case err != nil:
		r.RefuseError(err)
	}
	return now, before, level, err == nil
}
