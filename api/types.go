package api

import (
	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/bound"
	"github.com/claimq/claimq/api/callbody"
	"github.com/claimq/claimq/api/exchange"
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/fsm"
)

// Types answers GET /api/types.
func Types(r *exchange.Request) {
	q, bad := parseTypes(r)
	if bad != nil {
		r.Refuse(bad)
		return
	}
	if r.Narrowed() {
		q.See = r.MaySee
	}
	found, _, ok := findTypes(r, q)
	if !ok {
		return
	}
	b := jsonout.List(r.Body(), `{"success":true,"types":`, len(found.Types), func(b []byte, i int) []byte {
		return callbody.AppendType(b, &found.Types[i])
	})
	b = jsonout.IntField(b, `,"total":`, int64(found.Total))
	b = jsonout.IntField(b, `,"matched":`, int64(found.Matched))
	next := ""
	if n := len(found.Types); n > 0 && n < found.Matched && q.Order.ByName() {
		next = found.Types[n-1].Type
	}
	b = jsonout.StringOrNull(b, `,"next":`, next)
	b = callbody.AppendTallies(append(b, `,"all":{`...), &found.All)
	r.Send(fasthttp.StatusOK, append(b, "}}"...))
}

// typesLook is the number of types examined and read under one lock; each takes about 1 µs.
const typesLook = 500

// typeBytes bounds the memory for a type while it is found and in an answer, besides its name.
const typeBytes = 1 << 10

// typesAt describes the state, as of the first look, that an answer about types is based on.
type typesAt struct {
	index uint64
	bytes int64 // of the state
}

// findTypes finds the types that q asks for. If there are more than typesLook, later ones are as of a later index. ok
// is false if the request was already answered.
func findTypes(r *exchange.Request, q fsm.TypesQuery) (found fsm.TypesFound, at typesAt, ok bool) {
	q.Look = typesLook
	index, more := uint64(0), false
	look := func(m *fsm.Machine, now fsm.Stamp) {
		more, index = m.FindTypes(&found, q, now), m.Index()
		if at.index == 0 {
			at = typesAt{index, m.Bytes()}
		}
	}
	ok = r.Read(look)
	for ok && more {
		ok = r.RoomFor(min(found.Matched, q.Limit)*typeBytes) && r.ReadOn(index, look)
	}
	return found, at, ok
}

// parseTypes reads the query of GET /api/types.
func parseTypes(r *exchange.Request) (q fsm.TypesQuery, bad *refuse.Refusal) {
	limitMax := r.Server.Cfg.Limits.Items
	q.Limit = limitMax
	bad = r.ReadParams(exchange.Params{
		"order": parsedParam(&q.Order, "name, oldest, submitted_per_s, completed_per_s, failed_per_s or a status", func(text string) (fsm.TypeOrder, bool) {
			return fsm.TypeOrder(text), text != "" && fsm.TypeOrder(text).Valid()
		}),
		"limit": countParam(&q.Limit, limitMax),
		"name":  typeParam(&q.Name),
		"after": typeParam(&q.After),
		"attention": parsedParam(&q.Attention, "true or false", func(text string) (attention, ok bool) {
			return text == "true", text == "true" || text == "false"
		}),
	})
	if bad == nil && q.After != "" && !q.Order.ByName() {
		bad = badParam("order", "name with after")
	}
	return q, bad
}

// Defaults answers GET /api/defaults.
func Defaults(r *exchange.Request) {
	var v fsm.InForce
	if r.Read(func(m *fsm.Machine, _ fsm.Stamp) { v = m.DefaultsInForce() }) {
		r.Send(fasthttp.StatusOK, callbody.AppendDefaultsWithLimits(r.Body(), &v, &r.Server.Cfg.Limits))
	}
}

// SetDefaults answers PATCH /api/defaults.
func SetDefaults(r *exchange.Request) { act(r, callbody.NewDefaults(r.By())) }

// Type answers GET /api/types/{type}, even for a type with neither tasks nor settings.
func Type(r *exchange.Request) {
	name, ok := pathType(r, "task_type")
	if !ok {
		return
	}
	if !r.NoParams() {
		return
	}
	if bad := r.RefuseFilter("task_type", name); bad != nil {
		r.Refuse(bad)
		return
	}
	v := fsm.TypeView{Type: name}
	if !r.Read(func(m *fsm.Machine, now fsm.Stamp) {
		if seen, ok := m.Type(name, now); ok {
			v = seen
		}
	}) {
		return
	}
	b := callbody.AppendType(append(r.Body(), `{"success":true,"type":`...), &v)
	r.Send(fasthttp.StatusOK, append(b, '}'))
}

// SetType answers PATCH /api/types/{type}.
func SetType(r *exchange.Request) {
	if name, ok := pathType(r, "task_type"); ok {
		act(r, callbody.NewType(name, r.By()))
	}
}

// pathType returns the name in the path, which must have the form of a task type. If it is invalid, the request is
// refused, naming the parameter called, and ok is false.
func pathType(r *exchange.Request, called string) (name string, ok bool) {
	name, ok = exchange.Unescape(r.Target.Rest, false)
	if !ok || !bound.ValidTaskType(name) {
		r.Refuse(badParam(called, bound.TaskTypeAllowed))
		return "", false
	}
	return name, true
}
