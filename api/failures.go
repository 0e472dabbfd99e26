package api

import (
	"cmp"
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/errorgroup"
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
)

const (
	// groupedMax bounds the failed tasks that an answer groups.
	groupedMax = 10_000
	// failuresMax bounds the tasks examined for an answer, including those of other types.
	failuresMax = 100_000
	// failuresPage is the number examined under one lock; each takes about 1 to 2 µs.
	failuresPage = 200
	// hoursBytes is the approximate size of a group's counts in an answer.
	hoursBytes = 4 * errorgroup.Hours
)

// failuresRequest is the query of GET /api/failures.
type failuresRequest struct {
	query fsm.FailuresQuery
	limit int // limit of groups
}

// listFailures answers GET /api/failures. Later pages are as of a later index.
func listFailures(r *request) {
	req, bad := parseFailures(r)
	if bad == nil {
		bad = r.refuseFilter("task_type", req.query.Type)
	}
	if bad != nil {
		r.refuse(bad)
		return
	}
	var (
		groups errorgroup.Groups
		failed int64
		index  uint64
		more   bool
	)
	sight := r.sight()
	look := func(m *fsm.Machine, now fsm.Stamp) {
		groups.Now = cmp.Or(groups.Now, now.T)
		q := req.query
		q.Limit = min(failuresPage, groupedMax-groups.Looked)
		req.query.From, more = m.Failures(q, func(taskType, err []byte, end fsm.End) {
			if !sight.seesFailure(m, end.ID) {
				err = nil
			}
			groups.Add(taskType, err, end.ID, end.At)
		})
		failed, index = m.Failed(q.Type), m.Index()
	}
	ok := r.read(look)
	for looked := failuresPage; ok && more && groups.Looked < groupedMax && looked < failuresMax; looked += failuresPage {
		ok = r.reserveAnswer(groups.Bytes()) && r.readOn(index, look)
	}
	if !ok {
		return
	}
	largest := groups.Largest(req.limit)
	size := 0
	for _, g := range largest {
		size += len(g.Example) + len(g.Signature) + hoursBytes
	}
	if !r.reserveAnswer(size) {
		return
	}
	b := appendFailures(append(r.buffer(), `{"success":true,"failures":`...), largest)
	b = jsonout.IntField(b, `,"groups":`, int64(groups.Len()))
	b = jsonout.IntField(b, `,"looked":`, int64(groups.Looked))
	b = jsonout.IntField(b, `,"failed":`, failed)
	cursor := ""
	if more {
		cursor = formatEnd(req.query.From)
	}
	if cursor, ok = sealCursor(r, cursor); !ok {
		return
	}
	b = jsonout.StringOrNull(b, `,"next_cursor":`, cursor)
	r.send(fasthttp.StatusOK, append(b, '}'))
}

// parseFailures reads the parameters of GET /api/failures.
func parseFailures(r *request) (failuresRequest, *refuse.Refusal) {
	limitMax := r.limits().Items
	req := failuresRequest{limit: min(wire.PageDefault, limitMax)}
	const allowed = "a next_cursor of GET /api/failures"
	bad := r.readParams(params{
		"task_type":   typeParam(&req.query.Type),
		"ended_after": createdParam(&req.query.After, false),
		"limit":       countParam(&req.limit, limitMax),
		"cursor": func(p param) *refuse.Refusal {
			cursor, bad := openCursor(r, p.value, allowed)
			if bad != nil {
				return bad
			}
			return parsedParam(&req.query.From, allowed, parseEnd)(param{name: p.name, value: cursor})
		},
	})
	return req, bad
}

// appendFailures appends groups of failed tasks, as a list.
func appendFailures(b []byte, groups []*errorgroup.Group) []byte {
	return jsonout.List(b, "", len(groups), func(b []byte, i int) []byte {
		g := groups[i]
		b = jsonout.WordField(b, `{"group":`, g.ID.String())
		b = jsonout.StringField(b, `,"task_type":`, g.Type)
		b = jsonout.StringField(b, `,"signature":`, g.Signature)
		b = jsonout.StringField(b, `,"example":`, g.Example)
		b = jsonout.IntField(b, `,"count":`, int64(g.Count))
		b = jsonout.TimeField(b, `,"first_at":`, g.FirstAt)
		b = jsonout.TimeField(b, `,"last_at":`, g.LastAt)
		b = jsonout.Uints(b, `,"ids":`, g.IDs)
		b = jsonout.List(b, `,"by_hour":`, len(g.ByHour), func(b []byte, i int) []byte { return strconv.AppendUint(b, uint64(g.ByHour[i]), 10) })
		return append(b, '}')
	})
}
