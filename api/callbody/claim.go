package callbody

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/claimq/claimq/api/bound"
	"github.com/claimq/claimq/api/encode"
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// Claim is the body of POST /api/tasks/claim.
type Claim struct {
	Cmd  command.ClaimNext
	Many bool // limit was given
	// What was sent of the filters, as sent, inside the body; nil if it was
	// not. The 404 repeats them.
	rawTypes, rawMoreAttempts, rawSortBy, rawSortOrder []byte
	sortOrder                                          string // "", "asc" or "desc"
	WaitMS                                             int64  // how long to wait for a task, 0 = not at all
	noWait                                             bool   // wait_ms is unknown: the claim stands in another request
}

func newClaimRequest() Claim { return Claim{Cmd: command.ClaimNext{Limit: 1}} }

// DecodeClaim reads the body of a claim of the next tasks. What the request
// keeps as sent is valid as long as body is.
func DecodeClaim(body []byte, limits *bound.Limits) (Claim, *refuse.Refusal) {
	req := newClaimRequest()
	d := NewDecoder(body, limits)
	defer d.Free()
	bad := d.Fields(func(name []byte) *refuse.Refusal { return d.claimField(name, &req) })
	if bad == nil {
		bad = d.checkClaim(&req)
	}
	return req, bad
}

func (req *Claim) field(d *Decoder, name []byte) *refuse.Refusal {
	return d.claimField(name, req)
}

func (req *Claim) check(d *Decoder) *refuse.Refusal { return d.checkClaim(req) }

// Command is that of Body.
func (req *Claim) Command() command.Command { return req.Cmd }

// Answer appends the answer of a claim that took something, or that has a limit.
func (req *Claim) Answer(b []byte, p *nodes.Proposed) []byte {
	if req.Many {
		return AppendClaims(b, p)
	}
	return AppendClaim(b, p)
}

func (d *Decoder) claimField(name []byte, req *Claim) (bad *refuse.Refusal) {
	c := &req.Cmd
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
		if n, req.Many, bad = d.Integer("limit", 1, int64(d.limits.Items)); req.Many {
			c.Limit = int32(n)
		}
	case "lease_ms":
		c.LeaseMS, _, bad = d.Integer("lease_ms", bound.LeaseMSMin, bound.LeaseMSMax)
	case "wait_ms":
		if req.noWait {
			return d.Unknown(name)
		}
		req.WaitMS, _, bad = d.Integer("wait_ms", 0, bound.WaitMSMax)
	case "claim_request_id":
		c.RequestID, _, bad = d.key("claim_request_id", bound.RequestMax)
	default:
		bad = unknownOf[wire.Claim](d, name)
	}
	return bad
}

// checkClaim checks what one field alone does not show, and resolves the order.
func (d *Decoder) checkClaim(req *Claim) *refuse.Refusal {
	c := &req.Cmd
	if c.WorkerID == "" {
		return d.Missing("worker_id")
	}
	switch c.SortBy {
	case command.SortPriority:
		c.Ascending = req.sortOrder == "asc"
	case command.SortCreatedAt:
		c.Ascending = req.sortOrder != "desc"
	}
	return nil
}

// moreAttempts reads max_attempts_remaining.
func (d *Decoder) moreAttempts(n *int32) (raw []byte, bad *refuse.Refusal) {
	more, ok, bad := d.Integer("max_attempts_remaining", 0, command.AttemptsLeftMax)
	if !ok || bad != nil {
		return nil, bad
	}
	*n = int32(more)
	return strconv.AppendInt(nil, more, 10), nil
}

// taskTypes reads the types to claim from, sorted and without duplicates.
func (d *Decoder) taskTypes(types *[]string) (raw []byte, bad *refuse.Refusal) {
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
			return nil, d.Invalid("task_types", allowed)
		}
		field := "task_types"
		t, ok, bad := d.taskType(field)
		if bad == nil && !ok {
			bad = d.Invalid(field, bound.TaskTypeAllowed)
		}
		if bad != nil {
			if !bad.Syntax {
				bad.Field = d.path(field) + "[" + strconv.Itoa(i) + "]"
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

func (d *Decoder) sortBy(by *command.SortBy) (raw []byte, bad *refuse.Refusal) {
	const allowed = `"priority", "created_at" or "random"`
	raw, ok, bad := d.takes(kindString, "sort_by", allowed)
	if !ok || bad != nil {
		return nil, bad
	}
	switch string(d.unquote(raw)) {
	case "priority":
		*by = command.SortPriority
	case "created_at":
		*by = command.SortCreatedAt
	case "random":
		*by = command.SortRandom
	default:
		return nil, d.Invalid("sort_by", allowed)
	}
	return raw, nil
}

func (d *Decoder) sortOrder(order *string) (raw []byte, bad *refuse.Refusal) {
	const allowed = `"asc" or "desc", in any case`
	raw, ok, bad := d.takes(kindString, "sort_order", allowed)
	if !ok || bad != nil {
		return nil, bad
	}
	*order = strings.ToLower(string(d.unquote(raw)))
	if *order != "asc" && *order != "desc" {
		return nil, d.Invalid("sort_order", allowed)
	}
	return raw, nil
}

// DecodeClaimTask reads the body of POST /api/tasks/{id}/claim.
func DecodeClaimTask(id uint64, body []byte, limits *bound.Limits) (command.ClaimTask, *refuse.Refusal) {
	c := command.ClaimTask{ID: id}
	d := NewDecoder(body, limits)
	defer d.Free()
	bad := d.Fields(func(name []byte) (bad *refuse.Refusal) {
		switch string(name) {
		case "worker_id":
			c.WorkerID, bad = d.workerID()
		case "lease_ms":
			c.LeaseMS, _, bad = d.Integer("lease_ms", bound.LeaseMSMin, bound.LeaseMSMax)
		case "claim_request_id":
			c.RequestID, _, bad = d.key("claim_request_id", bound.RequestMax)
		default:
			bad = d.unknownAmong(name, "worker_id", "lease_ms", "claim_request_id")
		}
		return bad
	})
	if bad == nil && c.WorkerID == "" {
		bad = d.Missing("worker_id")
	}
	return c, bad
}

// AppendClaim appends the answer to a claim that took one task.
func AppendClaim(b []byte, p *nodes.Proposed) []byte {
	b = append(b, `{"success":true,"task":`...)
	b = encode.Claimed(b, &p.Result.Claims[0], p.Result.Repeated, p.Stamp)
	b = append(b, claimedMessage...)
	return appendRepeated(b, p.Result.Repeated)
}

// AppendClaims appends the answer to a claim with limit.
func AppendClaims(b []byte, p *nodes.Proposed) []byte {
	b = appendClaimedTasks(b, `{"success":true,"tasks":`, p, p.Result.Repeated)
	if len(p.Result.Claims) > 0 {
		b = append(b, claimedMessage...)
	} else {
		b = append(b, `,"message":"No pending tasks available"`...)
	}
	return appendRepeated(b, p.Result.Repeated)
}

// appendRepeated ends an answer that may be a repeated one.
func appendRepeated(b []byte, repeated bool) []byte {
	if repeated {
		b = append(b, `,"repeated":true`...)
	}
	return append(b, '}')
}

// AppendNoTasks appends the answer to a claim that found nothing, with the
// filters that were sent, as they were sent.
func AppendNoTasks(b []byte, req *Claim, requestID []byte) []byte {
	b = refuse.AppendOpen(b, refuse.Because(wire.CodeNoPendingTasks), requestID)
	b = append(b, `,"filters":{`...)
	start := len(b)
	for _, f := range []struct {
		name string
		raw  []byte
	}{{`,"task_types":`, req.rawTypes}, {`,"max_attempts_remaining":`, req.rawMoreAttempts}, {`,"sort_by":`, req.rawSortBy}, {`,"sort_order":`, req.rawSortOrder}} {
		name := f.name
		if len(b) == start {
			name = name[1:] // the first has no comma
		}
		b = jsonout.Raw(b, name, f.raw)
	}
	return append(b, '}', '}')
}

const claimedMessage = `,"message":"Task claimed successfully"`
