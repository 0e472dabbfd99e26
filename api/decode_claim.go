package api

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/claimq/claimq/fsm"
)

// claimRequest is the body of POST /api/tasks/claim.
type claimRequest struct {
	cmd  fsm.ClaimNext
	many bool // limit was given
	// What was sent of the filters, as sent, inside the body; nil if it was
	// not. The 404 repeats them.
	rawTypes, rawMoreAttempts, rawSortBy, rawSortOrder []byte
	sortOrder                                          string // "", "asc" or "desc"
	waitMS                                             int64  // how long to wait for a task, 0 = not at all
	noWait                                             bool   // wait_ms is unknown: the claim stands in another request
}

func newClaimRequest() claimRequest { return claimRequest{cmd: fsm.ClaimNext{Limit: 1}} }

// decodeClaim reads the body of a claim of the next tasks. What the request
// keeps as sent is valid as long as body is.
func decodeClaim(body []byte, limits *Limits) (claimRequest, *refusal) {
	req := newClaimRequest()
	d := newDecoder(body, limits)
	defer d.free()
	bad := d.fields(func(name []byte) *refusal { return d.claimField(name, &req) })
	if bad == nil {
		bad = d.checkClaim(&req)
	}
	return req, bad
}

func (req *claimRequest) field(d *decoder, name []byte) *refusal { return d.claimField(name, req) }

func (req *claimRequest) check(d *decoder) *refusal { return d.checkClaim(req) }

func (req *claimRequest) command() fsm.Command { return req.cmd }

// answer appends the answer of a claim that took something, or that has a limit.
func (req *claimRequest) answer(b []byte, p *fsm.Proposed) []byte {
	if req.many {
		return appendClaims(b, p)
	}
	return appendClaim(b, p)
}

func (d *decoder) claimField(name []byte, req *claimRequest) (bad *refusal) {
	c := &req.cmd
	switch string(name) {
	case "worker_id":
		c.WorkerID, bad = d.workerID()
	case "task_types":
		req.rawTypes, bad = d.taskTypes(&c.Types)
	case "max_attempts_remaining":
		req.rawMoreAttempts, bad = d.moreAttempts(&c.MoreAttempts)
	case "sort_by":
		req.rawSortBy, bad = d.sortBy(&c.SortBy)
	case "sort_order":
		req.rawSortOrder, bad = d.sortOrder(&req.sortOrder)
	case "limit":
		var n int64
		if n, req.many, bad = d.integer("limit", 1, int64(d.limits.Items)); req.many {
			c.Limit = int32(n)
		}
	case "lease_ms":
		c.LeaseMS, _, bad = d.integer("lease_ms", leaseMSMin, leaseMSMax)
	case "wait_ms":
		if req.noWait {
			return d.unknown(name)
		}
		req.waitMS, _, bad = d.integer("wait_ms", 0, waitMSMax)
	case "claim_request_id":
		c.RequestID, _, bad = d.key("claim_request_id", requestMax)
	default:
		bad = d.unknown(name)
	}
	return bad
}

// checkClaim checks what one field alone does not show, and resolves the order.
func (d *decoder) checkClaim(req *claimRequest) *refusal {
	c := &req.cmd
	if c.WorkerID == "" {
		return d.missing("worker_id")
	}
	switch c.SortBy {
	case fsm.SortPriority:
		c.Ascending = req.sortOrder == "asc"
	case fsm.SortCreatedAt:
		c.Ascending = req.sortOrder != "desc"
	}
	if len(c.Types) > 0 {
		return nil
	}
	switch {
	case c.SortBy == fsm.SortPriority && c.Ascending:
		return d.needsTypes("sort_order asc", "sort_order")
	case c.SortBy == fsm.SortRandom:
		return d.needsTypes("sort_by random", "sort_by")
	case req.rawMoreAttempts != nil:
		return d.needsTypes("max_attempts_remaining", "max_attempts_remaining")
	}
	return nil
}

// needsTypes is the refusal of what can only be asked of listed types.
func (d *decoder) needsTypes(what, field string) *refusal {
	return &refusal{
		code: d.code, field: d.path("task_types"), text: what + " needs task_types",
		advice: "List the task types to claim from, or leave " + field + " out",
	}
}

// moreAttempts reads max_attempts_remaining.
func (d *decoder) moreAttempts(n *int32) (raw []byte, bad *refusal) {
	more, ok, bad := d.integer("max_attempts_remaining", 0, fsm.AttemptsLeftMax)
	if !ok || bad != nil {
		return nil, bad
	}
	*n = int32(more)
	return strconv.AppendInt(nil, more, 10), nil
}

// taskTypes reads the types to claim from, sorted and without duplicates.
func (d *decoder) taskTypes(types *[]string) (raw []byte, bad *refusal) {
	allowed := "an array of up to " + strconv.Itoa(d.limits.Items) + " task types"
	start := int(d.dec.InputOffset())
	ok, bad := d.beginArray("task_types", allowed)
	if bad != nil || !ok {
		return nil, bad
	}
	for i := 0; ; i++ {
		ended, bad := d.endArray()
		if bad != nil {
			return nil, bad
		}
		if ended {
			break
		}
		if i == d.limits.Items {
			return nil, d.invalid("task_types", allowed)
		}
		field := "task_types"
		t, ok, bad := d.taskType(field)
		if bad == nil && !ok {
			bad = d.invalid(field, taskTypeAllowed)
		}
		if bad != nil {
			if !bad.syntax {
				bad.field = d.path(field) + "[" + strconv.Itoa(i) + "]"
			}
			return nil, bad
		}
		*types = append(*types, t)
	}
	slices.Sort(*types)
	*types = slices.Compact(*types)
	// Between the name and the array stand only a colon and space.
	raw = d.body[start:d.dec.InputOffset()]
	return raw[bytes.IndexByte(raw, '['):], nil
}

func (d *decoder) sortBy(by *fsm.SortBy) (raw []byte, bad *refusal) {
	const allowed = `"priority", "created_at" or "random"`
	raw, ok, bad := d.takes(kindString, "sort_by", allowed)
	if !ok || bad != nil {
		return nil, bad
	}
	switch string(d.unquote(raw)) {
	case "priority":
		*by = fsm.SortPriority
	case "created_at":
		*by = fsm.SortCreatedAt
	case "random":
		*by = fsm.SortRandom
	default:
		return nil, d.invalid("sort_by", allowed)
	}
	return raw, nil
}

func (d *decoder) sortOrder(order *string) (raw []byte, bad *refusal) {
	const allowed = `"asc" or "desc", in any case,`
	raw, ok, bad := d.takes(kindString, "sort_order", allowed)
	if !ok || bad != nil {
		return nil, bad
	}
	*order = strings.ToLower(string(d.unquote(raw)))
	if *order != "asc" && *order != "desc" {
		return nil, d.invalid("sort_order", allowed)
	}
	return raw, nil
}

// decodeClaimTask reads the body of POST /api/tasks/{id}/claim.
func decodeClaimTask(id uint64, body []byte, limits *Limits) (fsm.ClaimTask, *refusal) {
	c := fsm.ClaimTask{ID: id}
	d := newDecoder(body, limits)
	defer d.free()
	bad := d.fields(func(name []byte) (bad *refusal) {
		switch string(name) {
		case "worker_id":
			c.WorkerID, bad = d.workerID()
		case "lease_ms":
			c.LeaseMS, _, bad = d.integer("lease_ms", leaseMSMin, leaseMSMax)
		case "claim_request_id":
			c.RequestID, _, bad = d.key("claim_request_id", requestMax)
		default:
			bad = d.unknown(name)
		}
		return bad
	})
	if bad == nil && c.WorkerID == "" {
		bad = d.missing("worker_id")
	}
	return c, bad
}
