package api

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/codec"
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

// listSchedules answers GET /api/schedules: a page of them, by name.
func listSchedules(r *request) {
	after, limit := "", r.limits().Items
	bad := r.readParams(params{
		"after": typeParam(&after),
		"limit": countParam(&limit, r.limits().Items),
	})
	if bad != nil {
		r.refuse(bad)
		return
	}
	var all []*fsm.ScheduleView
	if !r.read(func(m *fsm.Machine, _ fsm.Stamp) { all = slices.Clone(m.Schedules()) }) {
		return
	}
	page, size, next := all[:0], 0, ""
	for _, v := range all {
		if v.Name <= after || !r.maySeeSchedule(v) {
			continue
		}
		n := sizeOfSchedule(v)
		if len(page) == limit || len(page) > 0 && size+n > schedulesBytes {
			next = page[len(page)-1].Name
			break
		}
		page, size = append(page, v), size+n
	}
	if r.reserveAnswer(size) {
		r.send(fasthttp.StatusOK, codec.AppendSchedules(r.buffer(), page, next))
	}
}

// plannedBytes is the approximate size of a step of a schedule's task in an answer, without its users' own data.
const plannedBytes = 256

// sizeOfSchedule returns the approximate size of a schedule in an answer.
func sizeOfSchedule(v *fsm.ScheduleView) int {
	n := scheduleBytes + sizeOfNew(&v.Task)
	if p := v.Task.Parent; p != nil {
		for i := range p.Steps {
			n += plannedBytes + sizeOfNew(&p.Steps[i].Task)
			for _, on := range p.Steps[i].DependsOn {
				n += len(`"",`) + len(p.Steps[on].Name)
			}
		}
	}
	return n
}

// sizeOfNew returns the approximate size of a task in an answer, which has the payload in base64.
func sizeOfNew(t *fsm.NewTask) int { return t.DataBytes() + len(t.Payload)/3 }

// getSchedule answers GET /api/schedules/{name}.
func getSchedule(r *request) {
	name, ok := pathType(r, "name")
	if !ok {
		return
	}
	if !r.noParams() {
		return
	}
	var view *fsm.ScheduleView
	switch ok := r.read(func(m *fsm.Machine, _ fsm.Stamp) { view = m.Schedule(name) }); {
	case !ok:
	case view == nil, !r.maySeeSchedule(view):
		r.refuse(refuse.Because(wire.CodeScheduleNotFound))
	default:
		r.send(fasthttp.StatusOK, codec.AppendSchedule(r.buffer(), view))
	}
}

// Bounds of GET /api/slots.
const (
	slotsLimit    = 10
	slotsLimitMax = 100
)

// listSlots answers GET /api/slots with the next times of a plan, which need not belong to a schedule.
func listSlots(r *request) {
	after, limit := time.Now().UnixMilli(), slotsLimit
	times, bad := parseSlots(r, &after, &limit)
	if bad != nil {
		r.refuse(bad)
		return
	}
	if !r.takeTurn() {
		return
	}
	b := append(r.buffer(), `{"success":true,"slots":[`...)
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
	r.send(fasthttp.StatusOK, append(b, "]}"...))
}

// parseSlots reads the query of GET /api/slots.
func parseSlots(r *request, after *int64, limit *int) (*cron.Times, *refuse.Refusal) {
	var plan cron.Plan
	planned := func(p param) *refuse.Refusal { return codec.PlanField(&plan, p.name, p.value) }
	bad := r.readParams(params{
		"cron": planned, "timezone": planned, "every_ms": planned,
		"after": createdParam(after, false), "limit": countParam(limit, slotsLimitMax),
	})
	if bad != nil {
		return nil, bad
	}
	return codec.ReadPlan(plan, r.zones())
}

// setSchedule answers PUT /api/schedules/{name}.
func setSchedule(r *request) {
	name, ok := pathType(r, "name")
	if !ok {
		return
	}
	c, bad := codec.DecodeSchedule(r.input(), r.limits(), r.zones())
	if bad != nil {
		r.refuse(bad)
		return
	}
	c.Name = name
	now, before, ok := readSchedule(r, name)
	if !ok {
		return
	}
	if bad := c.SetNext(now, before); bad != nil {
		r.refuse(bad)
		return
	}
	p, ok := r.proposeTask(command.SetSchedule{Schedule: c.Schedule, By: r.by()})
	if !ok {
		return
	}
	status := fasthttp.StatusOK
	if p.Result.Created {
		status = fasthttp.StatusCreated
	}
	r.send(status, codec.AppendSchedule(r.buffer(), p.Result.Schedule))
}

// deleteSchedule answers DELETE /api/schedules/{name}.
func deleteSchedule(r *request) {
	name, ok := pathType(r, "name")
	if !ok {
		return
	}
	if _, ok := r.proposeTask(command.DeleteSchedule{Name: name, By: r.by()}); ok {
		r.send(fasthttp.StatusOK, append(r.buffer(), `{"success":true,"deleted":1}`...))
	}
}

// readSchedule returns the leader's clocks, and the schedule before the change (nil: it is new). ok is
// false if the request was already answered; then nothing was written.
func readSchedule(r *request, name string) (now fsm.Stamp, before *fsm.ScheduleView, ok bool) {
	_, err := r.node().ReadLinearizable(r.ctx(), 0, func(m *fsm.Machine, stamp fsm.Stamp) {
		now, before = stamp, m.Schedule(name)
	})
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		r.refuse(refuse.Because(wire.CodeOverloaded))
	case err != nil:
		r.refuseError(err)
	}
	return now, before, err == nil
}
