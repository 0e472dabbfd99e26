package api

import (
	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/bound"
	"github.com/claimq/claimq/api/callbody"
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/fsm"
)

// Types answers GET /api/types.
func Types(r *request) {
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
		b = jsonout.Comma(b, start)
		b = callbody.AppendType(b, &views[i])
	}
	r.send(fasthttp.StatusOK, append(b, "]}"...))
}

// Defaults answers GET /api/defaults.
func Defaults(r *request) {
	if bad := refuseQuery(r.query); bad != nil {
		r.refuse(bad)
		return
	}
	var v fsm.InForce
	if r.read(func(m *fsm.Machine, _ fsm.Stamp) { v = m.DefaultsInForce() }) {
		r.send(fasthttp.StatusOK, callbody.AppendDefaults(r.body(), &v))
	}
}

// SetDefaults answers PATCH /api/defaults.
func SetDefaults(r *request) { act(r, callbody.NewDefaults(r.by())) }

// SetType answers PATCH /api/types/{type}.
func SetType(r *request) {
	name, ok := unescape(r.target.rest, false)
	if !ok || !bound.ValidTaskType(name) {
		r.refuse(badParam("task_type", bound.TaskTypeAllowed))
		return
	}
	act(r, callbody.NewType(name, r.by()))
}
