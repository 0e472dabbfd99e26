package api

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/bound"
	"github.com/claimq/claimq/api/callbody"
	"github.com/claimq/claimq/api/encode"
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/internal/cron"
)

// Schedules answers GET /api/schedules.
func Schedules(r *request) {
	if bad := refuseQuery(r.query); bad != nil {
		r.refuse(bad)
		return
	}
	var views []*fsm.ScheduleView
	if r.read(func(m *fsm.Machine, _ fsm.Stamp) { views = slices.Clone(m.Schedules()) }) {
		views = slices.DeleteFunc(views, func(v *fsm.ScheduleView) bool { return !r.maySee(v.Task.Type) })
		r.send(fasthttp.StatusOK, encode.Schedules(r.body(), views))
	}
}

// Schedule answers GET /api/schedules/{name}.
func Schedule(r *request) {
	name, ok := scheduleName(r)
	if !ok {
		return
	}
	if bad := refuseQuery(r.query); bad != nil {
		r.refuse(bad)
		return
	}
	var view *fsm.ScheduleView
	switch ok := r.read(func(m *fsm.Machine, _ fsm.Stamp) { view = m.Schedule(name) }); {
	case !ok:
	case view == nil, !r.maySee(view.Task.Type):
		r.refuse(refuse.Because(wire.CodeScheduleNotFound))
	default:
		r.send(fasthttp.StatusOK, encode.ScheduleAnswer(r.body(), view))
	}
}

// The bounds of GET /api/slots.
const (
	slotsLimit    = 10
	slotsLimitMax = 100
)

// Slots answers GET /api/slots: the next times of a plan, which need not be a schedule's.
func Slots(r *request) {
	after, limit := time.Now().UnixMilli(), slotsLimit
	times, bad := parseSlots(r.query, &after, &limit)
	if bad != nil {
		r.refuse(bad)
		return
	}
	b := append(r.body(), `{"success":true,"slots":[`...)
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
func parseSlots(params []param, after *int64, limit *int) (_ *cron.Times, bad *refuse.Refusal) {
	var plan cron.Plan
	for _, p := range params {
		var err error
		known, bad := callbody.PlanField(&plan, p.name, p.value)
		switch {
		case bad != nil:
			return nil, bad
		case known:
		case p.name == "after":
			var ok bool
			if *after, ok = callbody.ParseCreated(p.value, false); !ok {
				return nil, badParam(p.name, bound.CreatedAllowed)
			}
		case p.name == "limit":
			if *limit, err = strconv.Atoi(p.value); err != nil || *limit < 1 || *limit > slotsLimitMax {
				return nil, badParam(p.name, "an integer from 1 to "+strconv.Itoa(slotsLimitMax))
			}
		default:
			return nil, unknownParam(p.name)
		}
	}
	return callbody.ReadPlan(plan)
}

// SetSchedule answers PUT /api/schedules/{name}.
func SetSchedule(r *request) {
	name, ok := scheduleName(r)
	if !ok {
		return
	}
	c, bad := callbody.DecodeSchedule(r.http.Request.Body(), &r.server.cfg.Limits)
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
	p, ok := r.proposeTask(fsm.SetSchedule{Schedule: c.Schedule, By: r.by()})
	if !ok {
		return
	}
	status := fasthttp.StatusOK
	if p.Result.Created {
		status = fasthttp.StatusCreated
	}
	r.send(status, encode.ScheduleAnswer(r.body(), p.Result.Schedule))
}

// DeleteSchedule answers DELETE /api/schedules/{name}.
func DeleteSchedule(r *request) {
	name, ok := scheduleName(r)
	if !ok {
		return
	}
	if _, ok := r.proposeTask(fsm.DeleteSchedule{Name: name, By: r.by()}); ok {
		r.send(fasthttp.StatusOK, append(r.body(), `{"success":true,"deleted":1}`...))
	}
}

// scheduleName returns the name in the path; it has the form of a task type. ok
// is false if there is an answer already.
func scheduleName(r *request) (name string, ok bool) {
	name, ok = unescape(r.target.rest, false)
	if !ok || !bound.ValidTaskType(name) {
		r.refuse(badParam("name", bound.TaskTypeAllowed))
		return "", false
	}
	return name, true
}

// readSchedule returns the leader's clocks and what the schedule was, nil if it
// was not there. ok is false if there is an answer already: nothing was written.
func readSchedule(r *request, name string) (now fsm.Stamp, before *fsm.ScheduleView, ok bool) {
	_, err := r.server.node.ReadLinearizable(r.wait(), 0, func(m *fsm.Machine, stamp fsm.Stamp) {
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
