package codec

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// Claim is the body of POST /api/tasks/claim.
type Claim struct {
	body[command.ClaimNext]
	Many bool // limit was given
	// The filters as sent, pointing into the body; nil if not sent. The 404 repeats them.
	rawTypes, rawMoreAttempts, rawSortBy, rawSortOrder []byte
	sortOrder                                          string // "", "asc" or "desc"
	WaitMS                                             int64  // how long to wait for a task, 0 = do not wait
	noWait                                             bool   // wait_ms is an unknown field, because the claim is part of another request
	placed                                             bool   // claim_request_place was given

	// Include says that steps are shown with the results of those that they depend on: Dependencies, by the id of the
	// claimed step.
	Include      bool
	Dependencies map[uint64]*Dependencies
}

func newClaimRequest() (c Claim) {
	c.Cmd.Limit = 1
	return c
}

// DecodeClaim decodes the body of a claim of the next tasks. The raw filters are valid as long as body is.
func DecodeClaim(body []byte, limits *Limits) (Claim, *refuse.Refusal) {
	req := newClaimRequest()
	d := NewDecoder(body, limits)
	defer d.Free()
	bad := d.Fields(func(name []byte) *refuse.Refusal { return req.field(d, name) })
	if bad == nil {
		bad = req.check(d)
	}
	return req, bad
}

// Answer appends the answer of a claim that took something, or that has a limit.
func (req *Claim) Answer(b []byte, p *nodes.Proposed) []byte {
	if req.Many {
		return req.AppendMany(b, p)
	}
	return AppendClaim(b, p, req.Dependencies)
}

func (req *Claim) field(d *Decoder, name []byte) (bad *refuse.Refusal) {
	c := &req.Cmd
	switch string(name) {
	case "worker_id":
		c.WorkerID, bad = d.workerID()
	case "task_types":
		req.rawTypes, bad = d.taskTypes(&c.Types)
	case "max_attempts_remaining":
		req.rawMoreAttempts, bad = d.moreAttempts(&c.MoreAttempts)
	case "sort_by":
		c.SortBy, req.rawSortBy, bad = parsedRaw(d, "sort_by", `"priority", "created_at" or "random"`, parseSortBy)
	case "sort_order":
		req.sortOrder, req.rawSortOrder, bad = parsedRaw(d, "sort_order", `"asc" or "desc", in any case`, parseSortOrder)
	case "limit":
		var n int64
		if n, req.Many, bad = d.Integer("limit", 1, int64(d.limits.Items)); req.Many {
			c.Limit = int32(n)
		}
	case "lease_ms":
		c.LeaseMS, _, bad = d.Integer("lease_ms", wire.LeaseMSMin, wire.LeaseMSMax)
	case "wait_ms":
		if req.noWait {
			return d.Unknown(name)
		}
		req.WaitMS, _, bad = d.Integer("wait_ms", 0, wire.WaitMSMax)
	case "claim_request_id":
		c.RequestID, _, bad = d.key("claim_request_id", wire.RequestMax)
	case "claim_request_place":
		var place int64
		place, req.placed, bad = d.Integer("claim_request_place", 0, wire.RequestPlaceMax)
		c.RequestPlace = uint32(place)
	case "include":
		bad = d.include(&req.Include)
	default:
		bad = req.unknown(d, name)
	}
	return bad
}

// unknown is Decoder.Unknown for a field of the claim.
func (req *Claim) unknown(d *Decoder, name []byte) *refuse.Refusal {
	if req.noWait {
		return d.unknownAmong(name, namesBut(reflect.TypeFor[wire.Claim](), "wait_ms")...)
	}
	return unknownOf[wire.Claim](d, name)
}

// check also resolves the order.
func (req *Claim) check(d *Decoder) *refuse.Refusal {
	c := &req.Cmd
	switch c.SortBy {
	case command.SortPriority:
		c.Ascending = req.sortOrder == "asc"
	case command.SortCreatedAt:
		c.Ascending = req.sortOrder != "desc"
	}
	switch {
	case c.WorkerID == "":
		return d.Missing("worker_id")
	case req.placed && c.RequestID == "":
		return d.refuse("claim_request_place", d.path("claim_request_place")+" is given without claim_request_id", "Send the claim_request_id that the claim shares with others, or remove it")
	case req.placed && req.WaitMS > 0:
		return d.refuse("claim_request_place", "claim_request_place and wait_ms are both given", "Send at most one of claim_request_place and wait_ms: claims that share a claim_request_id do not wait")
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

// taskTypes reads the types to claim, sorted and without duplicates.
func (d *Decoder) taskTypes(types *[]string) (raw []byte, bad *refuse.Refusal) {
	const field = "task_types"
	start := d.dec.InputOffset()
	_, ok, bad := d.elements(field, "an array of up to "+strconv.Itoa(d.limits.Items)+" task types", d.limits.Items, func(i int) *refuse.Refusal {
		t, ok, bad := d.taskType(field)
		if bad == nil && !ok {
			bad = d.Invalid(field, wire.TaskTypeAllowed)
		}
		if bad != nil && !bad.Syntax {
			bad.Field = d.path(field) + "[" + strconv.Itoa(i) + "]"
		}
		*types = append(*types, t)
		return bad
	})
	if bad != nil || !ok {
		return nil, bad
	}
	slices.Sort(*types)
	*types = slices.Compact(*types)
	return d.arraySince(start), nil
}

func parseSortBy(s string) (by command.SortBy, ok bool) {
	switch s {
	case "priority":
		return command.SortPriority, true
	case "created_at":
		return command.SortCreatedAt, true
	case "random":
		return command.SortRandom, true
	}
	return by, false
}

func parseSortOrder(s string) (order string, ok bool) {
	order = strings.ToLower(s)
	return order, order == "asc" || order == "desc"
}

// DecodeClaimTask reads the body of POST /api/tasks/{id}/claim. include says that a claimed step is shown with the
// results of the steps that it depends on.
func DecodeClaimTask(id uint64, body []byte, limits *Limits) (c command.ClaimTask, include bool, bad *refuse.Refusal) {
	c.ID = id
	d := NewDecoder(body, limits)
	defer d.Free()
	bad = d.Fields(func(name []byte) (bad *refuse.Refusal) {
		switch string(name) {
		case "worker_id":
			c.WorkerID, bad = d.workerID()
		case "lease_ms":
			c.LeaseMS, _, bad = d.Integer("lease_ms", wire.LeaseMSMin, wire.LeaseMSMax)
		case "claim_request_id":
			c.RequestID, _, bad = d.key("claim_request_id", wire.RequestMax)
		case "include":
			bad = d.include(&include)
		default:
			bad = d.unknownAmong(name, "worker_id", "lease_ms", "claim_request_id", "include")
		}
		return bad
	})
	if bad == nil {
		bad = d.needs("worker_id", c.WorkerID)
	}
	return c, include, bad
}

// AppendClaim appends the answer to a claim that took one task.
func AppendClaim(b []byte, p *nodes.Proposed, on map[uint64]*Dependencies) []byte {
	b = append(b, `{"success":true,"task":`...)
	b = appendClaimed(b, &p.Result.Claims[0], p.Result.Repeated, p.Stamp, on)
	b = append(b, claimedMessage...)
	return appendRepeated(b, p.Result.Repeated)
}

// AppendMany appends the answer to a claim with limit.
func (req *Claim) AppendMany(b []byte, p *nodes.Proposed) []byte {
	b = appendClaimedTasks(b, `{"success":true,"tasks":`, p, p.Result.Repeated, req.Dependencies)
	if len(p.Result.Claims) > 0 {
		b = append(b, claimedMessage...)
	} else {
		b = append(b, `,"message":"No pending tasks available"`...)
	}
	return appendRepeated(b, p.Result.Repeated)
}

// appendRepeated ends an answer, noting if it is repeated.
func appendRepeated(b []byte, repeated bool) []byte {
	if repeated {
		b = append(b, `,"repeated":true`...)
	}
	return append(b, '}')
}

// AppendNoTasks appends the answer to a claim that found nothing, with the filters as sent.
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
