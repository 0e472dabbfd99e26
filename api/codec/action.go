package codec

import (
	"math"
	"reflect"

	"github.com/claimq/claimq/api/errorgroup"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// Action is the body of POST /api/tasks/actions.
type Action struct {
	Action      command.Action // 0 = not given
	Filter      fsm.Filter
	ErrorGroup  errorgroup.ID // selects like the filter; 0: all
	All         bool          // all tasks, without a filter
	AddAttempts int32
	Adds        bool // add_attempts was given
	DryRun      bool
	Expect      int64
	Expects     bool // expect was given
}

const (
	actionsAllowed = `"retry", "cancel" or "delete"`
	adviceAll      = `Send a filter that selects tasks, as {"status": "failed"}, or "all": true for all tasks`
)

// DecodeAction reads the body of POST /api/tasks/actions.
func DecodeAction(body []byte, limits *Limits) (req Action, bad *refuse.Refusal) {
	d := NewDecoder(body, limits)
	defer d.Free()
	filtered := false
	if bad := d.Fields(func(name []byte) *refuse.Refusal { return req.field(d, name, &filtered) }); bad != nil {
		return req, bad
	}
	selects := !reflect.ValueOf(req.Filter).IsZero() || req.ErrorGroup != 0
	switch {
	case req.Action == 0:
		bad = d.Missing("action")
	case !filtered && !req.All:
		bad = d.Missing("filter")
		bad.Advice = adviceAll
	case req.Adds && req.Action != command.ActionRetry:
		bad = d.refuse("add_attempts", "add_attempts is only for the action retry", "Leave add_attempts out")
	case !selects && !req.All:
		bad = d.refuse("filter", "filter is empty: it must select tasks", adviceAll)
	case selects && req.All:
		bad = d.refuse("all", "all and a filter that selects exclude each other", "Leave out all, or the filter")
	}
	return req, bad
}

// field reads one field. It sets filtered if that is a filter.
func (req *Action) field(d *Decoder, name []byte, filtered *bool) (bad *refuse.Refusal) {
	switch string(name) {
	case "action":
		req.Action, bad = parsed(d, "action", actionsAllowed, parseAction)
	case "filter":
		*filtered, bad = d.object("filter", func(name []byte) *refuse.Refusal { return req.filterField(d, name) })
	case "all":
		req.All, bad = d.Boolean("all")
	case "add_attempts":
		var n int64
		n, req.Adds, bad = d.Integer("add_attempts", 0, math.MaxInt32)
		req.AddAttempts = int32(n)
	case "dry_run":
		req.DryRun, bad = d.Boolean("dry_run")
	case "expect":
		req.Expect, req.Expects, bad = d.Integer("expect", 0, wire.IDMax)
	default:
		bad = unknownOf[wire.Action](d, name)
	}
	return bad
}

func parseAction(s string) (a command.Action, ok bool) {
	switch s {
	case "retry":
		return command.ActionRetry, true
	case "cancel":
		return command.ActionCancel, true
	case "delete":
		return command.ActionDelete, true
	}
	return a, false
}

// filterField reads one field of a filter, which has the parameters of a list.
func (req *Action) filterField(d *Decoder, name []byte) (bad *refuse.Refusal) {
	f, n := &req.Filter, int64(0)
	switch string(name) {
	case "status":
		f.Status, bad = parsed(d, "status", wire.StatusAllowed, fsm.ParseStatus)
	case "task_type":
		f.Type, _, bad = d.taskType("task_type")
	case "worker_id":
		f.WorkerID, bad = d.holderID()
	case "parent_id":
		n, _, bad = d.Integer("parent_id", 1, wire.IDMax)
		f.ParentID = uint64(n)
	case "labels":
		f.Labels, bad = d.labels()
	case "share_key":
		f.ShareKey, _, bad = d.key("share_key", wire.ShareKeyMax)
	case "error_group":
		req.ErrorGroup, bad = parsed(d, "error_group", errorgroup.IDAllowed, errorgroup.ParseID)
	case "created_after":
		f.CreatedAfter, bad = d.created("created_after", false)
	case "created_before":
		f.CreatedBefore, bad = d.created("created_before", true)
	default:
		bad = unknownOf[wire.Filter](d, name)
	}
	return bad
}

// created reads created_before or created_after, 0 if it is null.
func (d *Decoder) created(field string, before bool) (int64, *refuse.Refusal) {
	return parsed(d, field, wire.CreatedAllowed, func(s string) (int64, bool) { return ParseCreated(s, before) })
}
