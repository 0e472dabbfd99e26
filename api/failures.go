package api

import (
	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/bound"
	"github.com/claimq/claimq/api/encode"
	"github.com/claimq/claimq/api/exchange"
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/errorgroup"
)

const (
	// groupedMax bounds the failed tasks that an answer groups.
	groupedMax = 10_000
	// failuresMax bounds the tasks examined for an answer, including those of other types.
	failuresMax = 100_000
	// failuresPage is the number examined under one lock; each takes about 1 to 2 µs.
	failuresPage = 200
)

// failuresRequest is the query of GET /api/failures.
type failuresRequest struct {
	query fsm.FailuresQuery
	limit int // limit of groups
}

// Failures answers GET /api/failures. Later pages are as of a later index.
func Failures(r *exchange.Request) {
	req, bad := parseFailures(r)
	if bad == nil {
		bad = r.RefuseFilter("task_type", req.query.Type)
	}
	if bad != nil {
		r.Refuse(bad)
		return
	}
	var (
		groups errorgroup.Groups
		failed int64
		index  uint64
		more   bool
	)
	sight := r.Sight()
	look := func(m *fsm.Machine, _ fsm.Stamp) {
		q := req.query
		q.See = func(id uint64) bool { return sight.Failure(m, id) }
		q.Limit = min(failuresPage, groupedMax-groups.Looked)
		req.query.From, more = m.Failures(&groups, q)
		failed, index = m.Failed(q.Type), m.Index()
	}
	ok := r.Read(look)
	for looked := failuresPage; ok && more && groups.Looked < groupedMax && looked < failuresMax; looked += failuresPage {
		ok = r.RoomFor(groups.Bytes()) && r.ReadOn(index, look)
	}
	if !ok {
		return
	}
	largest := groups.Largest(req.limit)
	size := 0
	for _, g := range largest {
		size += len(g.Example) + len(g.Signature)
	}
	if !r.RoomFor(size) {
		return
	}
	b := encode.Failures(append(r.Body(), `{"success":true,"failures":`...), largest)
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
	r.Send(fasthttp.StatusOK, append(b, '}'))
}

// parseFailures reads the parameters of GET /api/failures.
func parseFailures(r *exchange.Request) (failuresRequest, *refuse.Refusal) {
	limitMax := r.Server.Cfg.Limits.Items
	req := failuresRequest{limit: min(bound.PageDefault, limitMax)}
	const allowed = "a next_cursor of GET /api/failures"
	bad := r.ReadParams(exchange.Params{
		"task_type": typeParam(&req.query.Type),
		"limit":     countParam(&req.limit, limitMax),
		"cursor": func(p exchange.Param) *refuse.Refusal {
			cursor, bad := openCursor(r, p.Value, allowed)
			if bad != nil {
				return bad
			}
			return parsedParam(&req.query.From, allowed, parseEnd)(exchange.Param{Name: p.Name, Value: cursor})
		},
	})
	return req, bad
}
