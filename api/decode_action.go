package api

import (
	"math"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
)

// actionRequest is the body of POST /api/tasks/actions.
type actionRequest struct {
	action      fsm.Action // 0 = none was given
	filter      fsm.Filter
	filtered    bool // filter was given
	addAttempts int32
	adds        bool // add_attempts was given
	dryRun      bool
	expect      int64
	expects     bool // expect was given
}

const actionsAllowed = `"retry", "cancel" or "delete"`

func decodeAction(body []byte, limits *Limits) (req actionRequest, bad *refusal) {
	d := newDecoder(body, limits)
	defer d.free()
	if bad := d.fields(func(name []byte) *refusal { return req.field(d, name) }); bad != nil {
		return req, bad
	}
	switch {
	case req.action == 0:
		bad = d.missing("action")
	case !req.filtered:
		bad = d.missing("filter")
		bad.advice = "Send filter in the JSON body; {} stands for all tasks"
	case req.adds && req.action != fsm.ActionRetry:
		bad = &refusal{
			code: wire.CodeInvalidRequest, field: "add_attempts", text: "add_attempts is only for the action retry",
			advice: "Leave add_attempts out",
		}
	}
	return req, bad
}

func (req *actionRequest) field(d *decoder, name []byte) (bad *refusal) {
	switch string(name) {
	case "action":
		req.action, bad = d.action()
	case "filter":
		req.filtered, bad = d.object("filter", func(name []byte) *refusal { return d.filterField(name, &req.filter) })
	case "add_attempts":
		var n int64
		n, req.adds, bad = d.integer("add_attempts", 0, math.MaxInt32)
		req.addAttempts = int32(n)
	case "dry_run":
		req.dryRun, bad = d.boolean("dry_run")
	case "expect":
		req.expect, req.expects, bad = d.integer("expect", 0, idMax)
	default:
		bad = d.unknown(name)
	}
	return bad
}

func (d *decoder) action() (fsm.Action, *refusal) {
	s, ok, bad := d.text("action", actionsAllowed)
	if !ok || bad != nil {
		return 0, bad
	}
	switch string(s) {
	case "retry":
		return fsm.ActionRetry, nil
	case "cancel":
		return fsm.ActionCancel, nil
	case "delete":
		return fsm.ActionDelete, nil
	}
	return 0, d.invalid("action", actionsAllowed)
}

// filterField reads one field of a filter: they are a list's parameters.
func (d *decoder) filterField(name []byte, f *fsm.Filter) (bad *refusal) {
	var n int64
	switch string(name) {
	case "status":
		f.Status, bad = d.status()
	case "task_type":
		f.Type, _, bad = d.taskType("task_type")
	case "worker_id":
		f.WorkerID, bad = d.holderID()
	case "parent_id":
		n, _, bad = d.integer("parent_id", 1, idMax)
		f.ParentID = uint64(n)
	case "labels":
		f.Labels, bad = d.labels()
	case "created_after":
		f.CreatedAfter, bad = d.created("created_after", false)
	case "created_before":
		f.CreatedBefore, bad = d.created("created_before", true)
	default:
		bad = d.unknown(name)
	}
	return bad
}

// status reads the name of a status, 0 if it is null.
func (d *decoder) status() (fsm.Status, *refusal) {
	s, ok, bad := d.text("status", statusAllowed)
	if !ok || bad != nil {
		return 0, bad
	}
	status, ok := fsm.ParseStatus(string(s))
	if !ok {
		return 0, d.invalid("status", statusAllowed)
	}
	return status, nil
}

// created reads created_before or created_after, 0 if it is null.
func (d *decoder) created(field string, before bool) (int64, *refusal) {
	s, ok, bad := d.text(field, createdAllowed)
	if !ok || bad != nil {
		return 0, bad
	}
	ms, ok := parseCreated(string(s), before)
	if !ok {
		return 0, d.invalid(field, createdAllowed)
	}
	return ms, nil
}
