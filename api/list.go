package api

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/codec"
	"github.com/claimq/claimq/api/errorgroup"
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/pointer"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
)

// listRequest is the query of GET /api/tasks.
type listRequest struct {
	query          fsm.ListQuery
	group          errorgroup.ID // 0: all
	search         search
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
	stepNameBytes = wire.NameMax + 4
	dependsBytes  = 1_000 * stepNameBytes
)

// listTasks answers GET /api/tasks.
func listTasks(r *request) {
	req, bad := parseList(r)
	if bad == nil {
		bad = r.refuseFilter("task_type", req.query.Type)
	}
	if bad != nil {
		r.refuse(bad)
		return
	}
	tasks, next, now, ok := req.find(r)
	if !ok {
		return
	}
	size := 0
	for i := range tasks {
		size += dataBytes(&tasks[i], req.params, req.result)
	}
	if !r.reserveAnswer(size) {
		return
	}
	view := codec.View{Now: now, Params: req.params, Result: req.result}
	b := append(r.buffer(), `{"success":true,"tasks":[`...)
	for i := range tasks {
		if i > 0 && len(b) > listBytes {
			next = fsm.End{At: tasks[i].CompletedAt, ID: tasks[i].ID}
			break
		}
		if tasks[i].Step() != nil && !r.reserveAnswer(len(b)+dependsBytes) {
			return
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = codec.AppendTask(b, &tasks[i], view)
	}
	cursor := ""
	if next.ID != 0 {
		cursor = formatCursor(next, &req.query)
	}
	if cursor, ok = sealCursor(r, cursor); !ok {
		return
	}
	b = jsonout.StringOrNull(b, `],"next_cursor":`, cursor)
	r.send(fasthttp.StatusOK, append(b, '}'))
}

// listLook is the number of records examined under one lock; each takes about 2 µs if its error is hashed or many of
// its labels are compared.
const listLook = 500

// find returns the tasks of the page, and the first of the next page, with id 0 if this is the last page. Later looks
// are as of a later index. ok is false if the request was already answered.
func (req *listRequest) find(r *request) (tasks []fsm.Task, next fsm.End, now fsm.Stamp, ok bool) {
	q, full, index := req.query, false, uint64(0)
	sight := r.sight()
	q.Look, r.timing.searches = listLook, q.Data != nil
	look := func(m *fsm.Machine, stamp fsm.Stamp) {
		page := m.List(q)
		tasks = slices.Grow(tasks, len(page.Tasks))
		for _, t := range page.Tasks {
			if sight.matches(m, &q, t) {
				tasks = append(tasks, *t)
				sight.redactTask(m, &tasks[len(tasks)-1])
			}
		}
		q.From, q.FromAt, q.Limit, q.Looked, q.Bytes = page.Next, page.NextAt, q.Limit-len(page.Tasks), page.Looked, page.Bytes
		q.Read = page.Read
		full, index, now = page.Full, m.Index(), stamp
	}
	for ok = r.read(look); ok && q.From != 0 && !full; ok = r.readOn(index, look) {
	}
	return tasks, fsm.End{At: q.FromAt, ID: q.From}, now, ok
}

// parseList reads the parameters of a list.
func parseList(r *request) (listRequest, *refuse.Refusal) {
	limitMax := r.limits().Items
	req := listRequest{query: fsm.ListQuery{Limit: min(wire.PageDefault, limitMax)}}
	if bad := r.readParams(req.known(limitMax)); bad != nil {
		return req, bad
	}
	if labels := &req.query.Labels; len(*labels) > 1 {
		slices.SortFunc(*labels, compareLabels)
		if *labels = slices.Compact(*labels); len(*labels) > wire.LabelsMax {
			return req, badParam("label", "up to "+strconv.Itoa(wire.LabelsMax)+" labels, as many as a task has")
		}
	}
	if req.query.ByEnd && !req.query.Status.Ended() {
		return req, badParam("order", "ended with status completed, failed or cancelled")
	}
	selectGroup(&req.query, req.group)
	req.search.selectIn(&req.query)
	cursor, bad := openCursor(r, req.cursor, cursorAllowed)
	if bad == nil && cursor != "" && !parseCursor(cursor, &req.query) {
		bad = badParam("cursor", cursorAllowed)
	}
	return req, bad
}

// selectGroup makes a list select the failed tasks of a group, if there is one.
func selectGroup(q *fsm.ListQuery, group errorgroup.ID) {
	if group != 0 {
		q.Status, q.Failure = cmp.Or(q.Status, fsm.StatusFailed), group.Has
	}
}

// cursorAllowed describes the valid cursors of a list.
const cursorAllowed = "a next_cursor of a page in the same order"

// known returns the parameters of a list.
func (req *listRequest) known(limitMax int) params {
	q := &req.query
	return params{
		"status":          parsedParam(&q.Status, wire.StatusAllowed, fsm.ParseStatus),
		"task_type":       typeParam(&q.Type),
		"worker_id":       holderParam(&q.WorkerID),
		"idempotency_key": textParam(&q.Key, "1 to 256 bytes without control characters", validKey),
		"parent_id":       parsedParam(&q.ParentID, "an integer from 1 to 9007199254740991", func(text string) (uint64, bool) { return parseID([]byte(text)) }),
		paramLabel:        req.addLabel,
		"share_key":       textParam(&q.ShareKey, shareKeyAllowed, validShareKey),
		"created_after":   createdParam(&q.CreatedAfter, false),
		"created_before":  createdParam(&q.CreatedBefore, true),
		"order":           req.setOrder,
		"contains":        req.search.setText,
		paramParam:        req.search.addParam,
		"error_group":     parsedParam(&req.group, errorgroup.IDAllowed, errorgroup.ParseID),
		"limit":           countParam(&q.Limit, limitMax),
		"cursor":          textParam(&req.cursor, cursorAllowed, func(text string) bool { return text != "" }),
		"include":         req.setInclude,
	}
}

func validKey(text string) bool { return wire.ValidKey(text, wire.KeyMax) }

// shareKeyAllowed describes the valid share keys.
const shareKeyAllowed = "1 to 128 bytes without control characters"

func validShareKey(text string) bool { return wire.ValidKey(text, wire.ShareKeyMax) }

func (req *listRequest) setOrder(p param) *refuse.Refusal {
	q := &req.query
	q.Descending, q.ByEnd = p.value == "desc", p.value == "ended"
	if !q.Descending && !q.ByEnd && p.value != "asc" {
		return badParam(p.name, "asc, desc or ended")
	}
	return nil
}

// addLabel reads one label: name and value, cut at the first colon.
func (req *listRequest) addLabel(p param) *refuse.Refusal {
	name, value, ok := strings.Cut(p.value, ":")
	if !ok || !wire.ValidKey(name, wire.LabelBytes) || value != "" && !wire.ValidKey(value, wire.LabelBytes) {
		return badParam(p.name, "NAME:VALUE, a name of 1 to 64 and a value of up to 64 bytes without control characters")
	}
	req.query.Labels = append(req.query.Labels, fsm.Label{Name: name, Value: value})
	return nil
}

func compareLabels(a, b fsm.Label) int {
	return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Value, b.Value))
}

func (req *listRequest) setInclude(p param) *refuse.Refusal {
	for what := range strings.SplitSeq(p.value, ",") {
		switch what {
		case "params":
			req.params = true
		case "result":
			req.result = true
		default:
			return badParam(p.name, "params, result or both, separated by a comma")
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
	if err != nil || from == 0 || from > wire.IDMax {
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
	if end.ID, err = strconv.ParseUint(id, 36, 64); err != nil || end.ID == 0 || end.ID > wire.IDMax {
		return fsm.End{}, false
	}
	return end, cursor == formatEnd(end)
}

// search selects tasks by their params and payload.
type search struct {
	text   []byte // that they contain; nil: any
	params []paramValue
}

// paramValue is a value in the params of a task.
type paramValue struct {
	at   pointer.Pointer
	text string
}

// selectIn makes a list select what is searched for, if anything is.
func (s *search) selectIn(q *fsm.ListQuery) {
	if s.text != nil || s.params != nil {
		q.Data = s.has
	}
}

// has reports whether a task with these is searched for.
func (s *search) has(params, payload []byte) bool {
	if s.text != nil && !bytes.Contains(params, s.text) && !bytes.Contains(payload, s.text) {
		return false
	}
	for _, p := range s.params {
		if value := p.at.Find(params); value == nil || !pointer.Equal(value, p.text) {
			return false
		}
	}
	return true
}

func (s *search) setText(p param) *refuse.Refusal {
	if p.value == "" || len(p.value) > wire.ContainsMax {
		return badParam(p.name, "1 to "+strconv.Itoa(wire.ContainsMax)+" bytes")
	}
	s.text = []byte(p.value)
	return nil
}

// addParam reads one pointer with its value, cut at the first colon.
func (s *search) addParam(p param) *refuse.Refusal {
	at, text, ok := strings.Cut(p.value, ":")
	path, err := pointer.Parse(at)
	if !ok || err != nil || len(p.value) > wire.ContainsMax {
		return badParam(p.name, "/NAME:VALUE or /NAME/NAME:VALUE, with a JSON pointer before the first colon, of up to "+strconv.Itoa(wire.ContainsMax)+" bytes in all")
	}
	if len(s.params) == wire.LabelsMax {
		return badParam(p.name, "given up to "+strconv.Itoa(wire.LabelsMax)+" times")
	}
	s.params = append(s.params, paramValue{path, text})
	return nil
}
