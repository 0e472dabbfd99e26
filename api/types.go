package api

import (
	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/codec"
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
)

// listTypes answers GET /api/types.
func listTypes(r *request) {
	q, bad := parseTypes(r)
	if bad != nil {
		r.refuse(bad)
		return
	}
	if r.narrowed() {
		q.See = r.maySee
	}
	found, _, ok := findTypes(r, q)
	if !ok {
		return
	}
	b := jsonout.List(r.buffer(), `{"success":true,"types":`, len(found.Types), func(b []byte, i int) []byte {
		return codec.AppendType(b, &found.Types[i])
	})
	b = jsonout.IntField(b, `,"total":`, int64(found.Total))
	b = jsonout.IntField(b, `,"matched":`, int64(found.Matched))
	next := ""
	if n := len(found.Types); n > 0 && n < found.Matched && q.Order.ByName() {
		next = found.Types[n-1].Type
	}
	b = jsonout.StringOrNull(b, `,"next":`, next)
	b = codec.AppendTallies(append(b, `,"all":{`...), &found.All)
	r.send(fasthttp.StatusOK, append(b, "}}"...))
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
func findTypes(r *request, q fsm.TypesQuery) (found fsm.TypesFound, at typesAt, ok bool) {
	q.Look = typesLook
	index, more := uint64(0), false
	look := func(m *fsm.Machine, now fsm.Stamp) {
		more, index = m.FindTypes(&found, q, now), m.Index()
		if at.index == 0 {
			at = typesAt{index, m.Bytes()}
		}
	}
	ok = r.read(look)
	for ok && more {
		ok = r.reserveAnswer(min(found.Matched, q.Limit)*typeBytes) && r.readOn(index, look)
	}
	return found, at, ok
}

// parseTypes reads the query of GET /api/types.
func parseTypes(r *request) (q fsm.TypesQuery, bad *refuse.Refusal) {
	limitMax := r.limits().Items
	q.Limit = limitMax
	bad = r.readParams(params{
		"order": parsedParam(&q.Order, "name, oldest, submitted_per_s, completed_per_s, failed_per_s or a status", func(text string) (fsm.TypeOrder, bool) {
			return fsm.TypeOrder(text), text != "" && fsm.TypeOrder(text).Valid()
		}),
		"limit":     countParam(&q.Limit, limitMax),
		"name":      typeParam(&q.Name),
		"after":     typeParam(&q.After),
		"attention": boolParam(&q.Attention),
	})
	if bad == nil && q.After != "" && !q.Order.ByName() {
		bad = badParam("order", "name with after")
	}
	return q, bad
}

// getDefaults answers GET /api/defaults.
func getDefaults(r *request) {
	var v fsm.InForce
	if r.read(func(m *fsm.Machine, _ fsm.Stamp) { v = m.DefaultsInForce() }) {
		r.send(fasthttp.StatusOK, codec.AppendDefaultsWithLimits(r.buffer(), &v, r.limits()))
	}
}

// changeDefaults answers PATCH /api/defaults.
func changeDefaults(r *request) { act(r, codec.NewDefaults(r.by())) }

// getType answers GET /api/types/{type}, even for a type with neither tasks nor settings.
func getType(r *request) {
	name, ok := pathType(r, "task_type")
	if !ok {
		return
	}
	if !r.noParams() {
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
	b := codec.AppendType(append(r.buffer(), `{"success":true,"type":`...), &v)
	r.send(fasthttp.StatusOK, append(b, '}'))
}

// changeType answers PATCH /api/types/{type}.
func changeType(r *request) {
	if name, ok := pathType(r, "task_type"); ok {
		act(r, codec.NewType(name, r.by()))
	}
}

// pathType returns the name in the path, which must have the form of a task type. If it is invalid, the request is
// refused, naming the parameter called, and ok is false.
func pathType(r *request, called string) (name string, ok bool) {
	name, ok = unescape(r.rest(), false)
	if !ok || !wire.ValidTaskType(name) {
		r.refuse(badParam(called, wire.TaskTypeAllowed))
		return "", false
	}
	return name, true
}

// statsTypesMax bounds the types in the answer of GET /api/stats to 1.4 MB, because answers from the leader to a
// follower are bounded.
const statsTypesMax = 10_000

// getStats answers GET /api/stats. The bytes are the whole cluster's; everything else covers only the key's types.
func getStats(r *request) {
	q := fsm.TypesQuery{Limit: statsTypesMax}
	if r.narrowed() {
		q.See = r.maySee
	}
	if found, at, ok := findTypes(r, q); ok {
		r.send(fasthttp.StatusOK, appendStats(r.buffer(), &found, at))
	}
}

func appendStats(b []byte, found *fsm.TypesFound, at typesAt) []byte {
	b = jsonout.UintField(b, `{"success":true,"index":`, at.index)
	b = codec.AppendCounts(b, `,"counts":`, &found.All.Counts)
	b = append(b, `,"types":{`...)
	start := len(b)
	for i := range found.Types {
		if t := &found.Types[i]; t.Counts != (fsm.TypeView{}).Counts {
			b = jsonout.String(jsonout.Comma(b, start), t.Type)
			b = codec.AppendCounts(b, ":", &t.Counts)
		}
	}
	b = jsonout.IntField(b, `},"types_left_out":`, int64(max(found.Matched-len(found.Types), 0)))
	b = jsonout.IntField(b, `,"bytes":`, at.bytes)
	b = jsonout.IntField(b, `,"oldest_pending_age_ms":`, found.All.OldestPendingAgeMS)
	return append(b, '}')
}

// shareBytes bounds the memory for a share in an answer.
const shareBytes = 1 << 10

// listShares answers GET /api/types/{type}/shares: a page of them by share key, or those with most pending tasks.
func listShares(r *request) {
	name, ok := pathType(r, "task_type")
	if !ok {
		return
	}
	q, bad := parseShares(r)
	if bad == nil {
		bad = r.refuseFilter("task_type", name)
	}
	if bad != nil {
		r.refuse(bad)
		return
	}
	limit := q.Limit
	if !q.ByPending {
		q.Limit++ // the one more says that there is a next page
	}
	var shares []fsm.ShareView
	if !r.reserveAnswer(limit*shareBytes) || !r.read(func(m *fsm.Machine, now fsm.Stamp) { shares = m.Shares(name, q, now) }) {
		return
	}
	next := ""
	if len(shares) > limit {
		shares = shares[:limit]
		next = shares[limit-1].Key
	}
	b := jsonout.List(r.buffer(), `{"success":true,"shares":`, len(shares), func(b []byte, i int) []byte {
		return codec.AppendShare(b, &shares[i])
	})
	b = jsonout.StringOrNull(b, `,"next":`, next)
	r.send(fasthttp.StatusOK, append(b, '}'))
}

// parseShares reads the query of GET /api/types/{type}/shares.
func parseShares(r *request) (q fsm.SharesQuery, bad *refuse.Refusal) {
	q.Limit = r.limits().Items
	bad = r.readParams(params{
		"order": parsedParam(&q.ByPending, "share_key or pending", func(text string) (byPending, ok bool) {
			return text == "pending", text == "pending" || text == "share_key"
		}),
		"after":    textParam(&q.After, shareKeyAllowed, validShareKey),
		"limit":    countParam(&q.Limit, r.limits().Items),
		"settings": boolParam(&q.Set),
	})
	switch {
	case bad != nil:
	case q.ByPending && q.After != "":
		bad = badParam("order", "share_key with after")
	case q.ByPending:
		q.Limit = min(q.Limit, fsm.SharesTopMax)
	}
	return q, bad
}

// setShare answers PUT /api/types/{type}/shares/{share_key}.
func setShare(r *request) {
	if name, key, ok := pathShare(r); ok {
		act(r, codec.NewShare(name, key, r.by()))
	}
}

// deleteShare answers DELETE /api/types/{type}/shares/{share_key}.
func deleteShare(r *request) {
	name, key, ok := pathShare(r)
	if !ok || !r.noParams() {
		return
	}
	c := codec.NewShare(name, key, r.by())
	if p, ok := r.proposeTask(c.Command()); ok {
		r.send(fasthttp.StatusOK, c.Answer(r.buffer(), &p))
	}
}

// pathShare returns the type and the share key in the path. If one is invalid, the request is refused and ok is false.
func pathShare(r *request) (name, key string, ok bool) {
	if name, ok = pathType(r, "task_type"); !ok {
		return "", "", false
	}
	key, ok = unescape(r.target.more, false)
	if !ok || !validShareKey(key) {
		r.refuse(badParam("share_key", shareKeyAllowed))
		return "", "", false
	}
	return name, key, true
}
