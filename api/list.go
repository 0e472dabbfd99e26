package api

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/fsm"
)

// listRequest is the query of GET /api/tasks.
type listRequest struct {
	query          fsm.ListQuery
	params, result bool // include
	cursor         string
}

// listBytes is how long the answer to a list gets before it is cut: more than
// what the state bounds a page by, but not by all that is shown. Each step names
// what it depends on, which the state has once for all steps of a parent.
const listBytes = 16 << 20

// list answers GET /api/tasks.
func (r *request) list() {
	req, bad := parseList(r.query, r.server.cfg.Limits.Items)
	if bad == nil {
		bad = r.refuseFilter("task_type", req.query.Type)
	}
	if bad != nil {
		r.refuse(bad)
		return
	}
	var tasks []fsm.Task
	var next uint64
	var now fsm.Stamp
	ok := r.read(func(m *fsm.Machine, stamp fsm.Stamp) {
		page := m.List(req.query)
		tasks = make([]fsm.Task, len(page.Tasks))
		for i, t := range page.Tasks {
			tasks[i] = *t
		}
		next, now = page.Next, stamp
	})
	if !ok {
		return
	}
	size := 0
	for i := range tasks {
		size += dataBytes(&tasks[i], req.params, req.result)
	}
	if !r.roomFor(size) {
		return
	}
	view := taskView{now: now, params: req.params, result: req.result}
	b := append(r.body(), `{"success":true,"tasks":[`...)
	for i := range tasks {
		if i > 0 && len(b) > listBytes {
			next = tasks[i].ID
			break
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = appendTask(b, &tasks[i], view)
	}
	b = append(b, `],"next_cursor":`...)
	if next == 0 {
		b = append(b, "null"...)
	} else {
		b = appendString(b, formatCursor(next, req.query.Descending))
	}
	r.send(fasthttp.StatusOK, append(b, '}'))
}

// parseList reads the parameters of a list.
func parseList(params []param, limitMax int) (listRequest, *refusal) {
	req := listRequest{query: fsm.ListQuery{Limit: min(pageDefault, limitMax)}}
	for _, p := range params {
		if bad := req.set(p, limitMax); bad != nil {
			return req, bad
		}
	}
	if labels := &req.query.Labels; len(*labels) > 1 {
		slices.SortFunc(*labels, compareLabels)
		if *labels = slices.Compact(*labels); len(*labels) > labelsMax {
			return req, badParam("label", "up to "+strconv.Itoa(labelsMax)+" labels, as many as a task has,")
		}
	}
	if req.cursor != "" {
		from, ok := parseCursor(req.cursor, req.query.Descending)
		if !ok {
			return req, badParam("cursor", "a next_cursor of a page in the same order")
		}
		req.query.From = from
	}
	return req, nil
}

func badParam(name, allowed string) *refusal {
	return refuseParam(name, "Invalid "+name+": "+allowed+" is allowed")
}

// set reads one parameter.
func (req *listRequest) set(p param, limitMax int) *refusal {
	q := &req.query
	var ok bool
	var err error
	switch p.name {
	case "status":
		if q.Status, ok = fsm.ParseStatus(p.value); !ok {
			return badParam(p.name, statusAllowed)
		}
	case "task_type":
		if q.Type = p.value; !validTaskType(p.value) {
			return badParam(p.name, taskTypeAllowed)
		}
	case "worker_id":
		if q.WorkerID = p.value; !validProcessorID(p.value) {
			return refuseHolderID(p.name)
		}
	case "idempotency_key":
		if q.Key = p.value; !validKey(p.value, keyMax) {
			return badParam(p.name, "1 to 256 bytes without control characters")
		}
	case "parent_id":
		if q.ParentID, ok = parseID([]byte(p.value)); !ok {
			return badParam(p.name, idAllowed)
		}
	case paramLabel:
		return req.addLabel(p)
	case "created_after":
		if q.CreatedAfter, ok = parseCreated(p.value, false); !ok {
			return badParam(p.name, createdAllowed)
		}
	case "created_before":
		if q.CreatedBefore, ok = parseCreated(p.value, true); !ok {
			return badParam(p.name, createdAllowed)
		}
	case "order":
		if q.Descending = p.value == "desc"; !q.Descending && p.value != "asc" {
			return badParam(p.name, "asc or desc")
		}
	case "limit":
		if q.Limit, err = strconv.Atoi(p.value); err != nil || q.Limit < 1 || q.Limit > limitMax {
			return badParam(p.name, "an integer from 1 to "+strconv.Itoa(limitMax))
		}
	case "cursor":
		if req.cursor = p.value; p.value == "" {
			return badParam(p.name, "a next_cursor of a page in the same order")
		}
	case "include":
		return req.setInclude(p)
	default:
		return unknownParam(p.name)
	}
	return nil
}

// The words for what a filter's fields may be.
const (
	statusAllowed  = "pending, scheduled, blocked, claimed, running, completed, failed or cancelled"
	idAllowed      = "an integer from 1 to 9007199254740991"
	createdAllowed = "a time in RFC 3339, as 2006-01-02T15:04:05.000Z,"
)

// parseCreated reads created_before, or created_after. The state has
// milliseconds: a finer time is rounded so that the comparison stays exact.
func parseCreated(text string, before bool) (ms int64, ok bool) {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return 0, false
	}
	ms = t.UnixMilli()
	if !before {
		return max(ms, 0), true
	}
	if t.Nanosecond()%int(time.Millisecond) != 0 {
		ms++
	}
	return max(ms, 1), true // 0 would not filter
}

// addLabel reads one label: name and value, cut at the first colon.
func (req *listRequest) addLabel(p param) *refusal {
	name, value, ok := strings.Cut(p.value, ":")
	if !ok || !validKey(name, labelBytes) || value != "" && !validKey(value, labelBytes) {
		return badParam(p.name, "NAME:VALUE, a name of 1 to 64 and a value of up to 64 bytes without control characters,")
	}
	req.query.Labels = append(req.query.Labels, fsm.Label{Name: name, Value: value})
	return nil
}

func compareLabels(a, b fsm.Label) int {
	return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Value, b.Value))
}

func (req *listRequest) setInclude(p param) *refusal {
	for what := range strings.SplitSeq(p.value, ",") {
		switch what {
		case "params":
			req.params = true
		case "result":
			req.result = true
		default:
			return badParam(p.name, "params, result or both, separated by a comma,")
		}
	}
	return nil
}

// A cursor is the direction, a or d, and the id to go on with, in base 36.
// Clients must not read anything into it.
func formatCursor(next uint64, descending bool) string {
	direction := "a"
	if descending {
		direction = "d"
	}
	return direction + strconv.FormatUint(next, 36)
}

func parseCursor(cursor string, descending bool) (from uint64, ok bool) {
	from, err := strconv.ParseUint(cursor[1:], 36, 64)
	if err != nil || from == 0 || from > idMax {
		return 0, false
	}
	return from, cursor == formatCursor(from, descending)
}
