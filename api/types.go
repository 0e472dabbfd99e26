package api

import (
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/bound"
	"github.com/claimq/claimq/api/callbody"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/fsm"
)

// Types answers GET /api/types.
func Types(r *request) {
	q, bad := parseTypes(r.query, r.server.cfg.Limits.Items)
	if bad != nil {
		r.refuse(bad)
		return
	}
	if len(r.onlyTypes) > 0 {
		q.See = r.maySee
	}
	var found fsm.TypesFound
	if !r.read(func(m *fsm.Machine, now fsm.Stamp) { found = m.FindTypes(q, now) }) {
		return
	}
	b := append(r.body(), `{"success":true,"types":[`...)
	for i := range found.Types {
		if i > 0 {
			b = append(b, ',')
		}
		b = callbody.AppendType(b, &found.Types[i])
	}
	b = strconv.AppendInt(append(b, `],"total":`...), int64(found.Total), 10)
	b = strconv.AppendInt(append(b, `,"matched":`...), int64(found.Matched), 10)
	b = callbody.AppendTallies(append(b, `,"all":{`...), &found.All)
	r.send(fasthttp.StatusOK, append(b, "}}"...))
}

// parseTypes reads the query of GET /api/types.
func parseTypes(params []param, limitMax int) (q fsm.TypesQuery, bad *refuse.Refusal) {
	for _, p := range params {
		var err error
		switch p.name {
		case "order":
			if q.Order = fsm.TypeOrder(p.value); p.value == "" || !q.Order.Valid() {
				return q, badParam(p.name, "name, oldest, submitted_per_s, completed_per_s, failed_per_s or a status")
			}
		case "limit":
			if q.Limit, err = strconv.Atoi(p.value); err != nil || q.Limit < 1 || q.Limit > limitMax {
				return q, badParam(p.name, "an integer from 1 to "+strconv.Itoa(limitMax))
			}
		case "name":
			if q.Name = p.value; !bound.ValidTaskType(p.value) {
				return q, badParam(p.name, bound.TaskTypeAllowed)
			}
		case "attention":
			if q.Attention = p.value == "true"; !q.Attention && p.value != "false" {
				return q, badParam(p.name, "true or false")
			}
		default:
			return q, unknownParam(p.name)
		}
	}
	return q, nil
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

// Type answers GET /api/types/{type}: also of a type that has neither tasks nor settings.
func Type(r *request) {
	name, ok := typeOf(r)
	if !ok {
		return
	}
	if bad := refuseQuery(r.query); bad != nil {
		r.refuse(bad)
		return
	}
	if bad := r.refuseFilter("task_type", name); bad != nil {
		r.refuse(bad)
		return
	}
	v := fsm.TypeView{Type: name}
	if !r.read(func(m *fsm.Machine, now fsm.Stamp) {
		if seen, ok := m.Type(name, now); ok {
			v = seen
		}
	}) {
		return
	}
	b := callbody.AppendType(append(r.body(), `{"success":true,"type":`...), &v)
	r.send(fasthttp.StatusOK, append(b, '}'))
}

// SetType answers PATCH /api/types/{type}.
func SetType(r *request) {
	if name, ok := typeOf(r); ok {
		act(r, callbody.NewType(name, r.by()))
	}
}

// typeOf returns the type that the path names. ok is false if there is an answer already.
func typeOf(r *request) (name string, ok bool) {
	name, ok = unescape(r.target.rest, false)
	if !ok || !bound.ValidTaskType(name) {
		r.refuse(badParam("task_type", bound.TaskTypeAllowed))
		return "", false
	}
	return name, true
}
