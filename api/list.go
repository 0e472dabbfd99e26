package api

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/bound"
	"github.com/claimq/claimq/api/encode"
	"github.com/claimq/claimq/api/exchange"
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/errorgroup"
)

// listRequest is the query of GET /api/tasks.
type listRequest struct {
	query          fsm.ListQuery
	params, result bool // include
	cursor         string
}

// listBytes is the length at which the answer to a list is cut. It is more than the state's bound of a page, because
// the answer shows more: each step names its dependencies, which the state stores once for all steps of a parent.
const listBytes = 16 << 20

// Approximate sizes in answers: of each step of a parent besides its error, of the name of a dependency, and of all
// dependencies of one step.
const (
	stepBytes     = 256
	stepNameBytes = bound.NameMax + 4
	dependsBytes  = 1_000 * stepNameBytes
)

// List answers GET /api/tasks.
func List(r *exchange.Request) {
	req, bad := parseList(r)
	if bad == nil {
		bad = r.RefuseFilter("task_type", req.query.Type)
	}
	if bad != nil {
		r.Refuse(bad)
		return
	}
	tasks, next, now, ok := req.find(r)
	if !ok {
		return
	}
	size := 0
	for i := range tasks {
		size += exchange.DataBytes(&tasks[i], req.params, req.result)
	}
	if !r.RoomFor(size) {
		return
	}
	view := encode.View{Now: now, Params: req.params, Result: req.result}
	b := append(r.Body(), `{"success":true,"tasks":[`...)
	for i := range tasks {
		if i > 0 && len(b) > listBytes {
			next = fsm.End{At: tasks[i].CompletedAt, ID: tasks[i].ID}
			break
		}
		if tasks[i].Step() != nil && !r.RoomFor(len(b)+dependsBytes) {
			return
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = encode.Task(b, &tasks[i], view)
	}
	cursor := ""
	if next.ID != 0 {
		cursor = formatCursor(next, &req.query)
	}
	if cursor, ok = sealCursor(r, cursor); !ok {
		return
	}
	b = jsonout.StringOrNull(b, `],"next_cursor":`, cursor)
	r.Send(fasthttp.StatusOK, append(b, '}'))
}

// listLook is the number of records examined under one lock; each takes about 2 µs if its error is hashed or many of
// its labels are compared.
const listLook = 500

// find returns the tasks of the page, and the first of the next page, with id 0 if this is the last page. Later looks
// are as of a later index. ok is false if the request was already answered.
func (req *listRequest) find(r *exchange.Request) (tasks []fsm.Task, next fsm.End, now fsm.Stamp, ok bool) {
	q, full, index := req.query, false, uint64(0)
	sight := r.Sight()
	q.Look = listLook
	look := func(m *fsm.Machine, stamp fsm.Stamp) {
		page := m.List(q)
		tasks = slices.Grow(tasks, len(page.Tasks))
		for _, t := range page.Tasks {
			if sight.Matches(m, &q.Filter, t) {
				tasks = append(tasks, *t)
				sight.Task(m, &tasks[len(tasks)-1])
			}
		}
		q.From, q.FromAt, q.Limit, q.Looked, q.Bytes = page.Next, page.NextAt, q.Limit-len(page.Tasks), page.Looked, page.Bytes
		full, index, now = page.Full, m.Index(), stamp
	}
	for ok = r.Read(look); ok && q.From != 0 && !full; ok = r.ReadOn(index, look) {
	}
	return tasks, fsm.End{At: q.FromAt, ID: q.From}, now, ok
}

// parseList reads the parameters of a list.
func parseList(r *exchange.Request) (listRequest, *refuse.Refusal) {
	limitMax := r.Server.Cfg.Limits.Items
	req := listRequest{query: fsm.ListQuery{Limit: min(bound.PageDefault, limitMax)}}
	if bad := r.ReadParams(req.known(limitMax)); bad != nil {
		return req, bad
	}
	if labels := &req.query.Labels; len(*labels) > 1 {
		slices.SortFunc(*labels, compareLabels)
		if *labels = slices.Compact(*labels); len(*labels) > bound.LabelsMax {
			return req, badParam("label", "up to "+strconv.Itoa(bound.LabelsMax)+" labels, as many as a task has")
		}
	}
	if req.query.ByEnd && !req.query.Status.Ended() {
		return req, badParam("order", "ended with status completed, failed or cancelled")
	}
	cursor, bad := openCursor(r, req.cursor, cursorAllowed)
	if bad == nil && cursor != "" && !parseCursor(cursor, &req.query) {
		bad = badParam("cursor", cursorAllowed)
	}
	return req, bad
}

// cursorAllowed describes the valid cursors of a list.
const cursorAllowed = "a next_cursor of a page in the same order"

// known returns the parameters of a list.
func (req *listRequest) known(limitMax int) exchange.Params {
	q := &req.query
	return exchange.Params{
		"status":            parsedParam(&q.Status, bound.StatusAllowed, fsm.ParseStatus),
		"task_type":         typeParam(&q.Type),
		"worker_id":         holderParam(&q.WorkerID),
		"idempotency_key":   textParam(&q.Key, "1 to 256 bytes without control characters", validKey),
		"parent_id":         parsedParam(&q.ParentID, "an integer from 1 to 9007199254740991", func(text string) (uint64, bool) { return exchange.ParseID([]byte(text)) }),
		exchange.ParamLabel: req.addLabel,
		"created_after":     createdParam(&q.CreatedAfter, false),
		"created_before":    createdParam(&q.CreatedBefore, true),
		"order":             req.setOrder,
		"error_group":       parsedParam(&q.ErrorGroup, errorgroup.IDAllowed, errorgroup.ParseID),
		"limit":             countParam(&q.Limit, limitMax),
		"cursor":            textParam(&req.cursor, cursorAllowed, func(text string) bool { return text != "" }),
		"include":           req.setInclude,
	}
}

func validKey(text string) bool { return bound.ValidKey(text, bound.KeyMax) }

func (req *listRequest) setOrder(p exchange.Param) *refuse.Refusal {
	q := &req.query
	q.Descending, q.ByEnd = p.Value == "desc", p.Value == "ended"
	if !q.Descending && !q.ByEnd && p.Value != "asc" {
		return badParam(p.Name, "asc, desc or ended")
	}
	return nil
}

// addLabel reads one label: name and value, cut at the first colon.
func (req *listRequest) addLabel(p exchange.Param) *refuse.Refusal {
	name, value, ok := strings.Cut(p.Value, ":")
	if !ok || !bound.ValidKey(name, bound.LabelBytes) || value != "" && !bound.ValidKey(value, bound.LabelBytes) {
		return badParam(p.Name, "NAME:VALUE, a name of 1 to 64 and a value of up to 64 bytes without control characters")
	}
	req.query.Labels = append(req.query.Labels, fsm.Label{Name: name, Value: value})
	return nil
}

func compareLabels(a, b fsm.Label) int {
	return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Value, b.Value))
}

func (req *listRequest) setInclude(p exchange.Param) *refuse.Refusal {
	for what := range strings.SplitSeq(p.Value, ",") {
		switch what {
		case "params":
			req.params = true
		case "result":
			req.result = true
		default:
			return badParam(p.Name, "params, result or both, separated by a comma")
		}
	}
	return nil
}

// formatCursor returns a cursor: the order (a, d or e) and the next id in base 36; if ordered by end, the time of
// that task's end precedes the id. Clients must not interpret it.
func formatCursor(next fsm.End, q *fsm.ListQuery) string {
	id := strconv.FormatUint(next.ID, 36)
	switch {
	case q.ByEnd:
		return formatEnd(next)
	case q.Descending:
		return "d" + id
	}
	return "a" + id
}

// parseCursor reads the cursor of a page in the order that q asks for.
func parseCursor(cursor string, q *fsm.ListQuery) (ok bool) {
	if q.ByEnd {
		end, ok := parseEnd(cursor)
		q.From, q.FromAt = end.ID, end.At
		return ok
	}
	from, err := strconv.ParseUint(cursor[1:], 36, 64)
	if err != nil || from == 0 || from > bound.IDMax {
		return false
	}
	q.From = from
	return cursor == formatCursor(fsm.End{ID: from}, q)
}

// formatEnd returns the cursor for a page in the order of ends.
func formatEnd(next fsm.End) string {
	return "e" + strconv.FormatInt(next.At, 36) + "." + strconv.FormatUint(next.ID, 36)
}

// parseEnd parses what formatEnd returns.
func parseEnd(cursor string) (end fsm.End, ok bool) {
	at, id, _ := strings.Cut(strings.TrimPrefix(cursor, "e"), ".")
	var err error
	if end.At, err = strconv.ParseInt(at, 36, 64); err != nil {
		return fsm.End{}, false
	}
	if end.ID, err = strconv.ParseUint(id, 36, 64); err != nil || end.ID == 0 || end.ID > bound.IDMax {
		return fsm.End{}, false
	}
	return end, cursor == formatEnd(end)
}
