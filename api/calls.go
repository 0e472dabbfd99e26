package api

import (
	"time"

	"github.com/claimq/claimq/api/codec"
	"github.com/claimq/claimq/api/door"
	"github.com/claimq/claimq/api/meter"
)

// calls returns the table of all calls, one row each, in any order.
func (s *Server) calls() []call {
	return []call{
		{name: "submit_tasks", pattern: "POST /api/tasks", roles: door.Producers, is: mutation, answer: submitTasks},
		{name: "get_task", pattern: "GET /api/tasks/{id}", roles: door.EveryRole, answer: getTask},
		{name: "get_task_by_key", pattern: "GET /api/tasks/by-key/{key}", roles: door.EveryRole, answer: getTaskByKey},
		{name: "list_tasks", pattern: "GET /api/tasks", roles: door.EveryRole, is: readsMuch, answer: listTasks},
		{name: "list_failures", pattern: "GET /api/failures", roles: door.EveryRole, is: readsMuch, answer: listFailures},
		{name: "explain_task", pattern: "GET /api/tasks/{id}/why", roles: door.EveryRole, is: noParams | readsMuch, answer: explainTask},
		{name: "change_task", pattern: "PATCH /api/tasks/{id}", roles: door.Producers, is: mutation, answer: taskCall[codec.Patch]},
		{name: "delete_task", pattern: "DELETE /api/tasks/{id}", roles: door.Producers, is: mutation, answer: deleteTask},
		{name: "retry_task", pattern: "POST /api/tasks/{id}/retry", roles: door.Producers, is: mutation, answer: taskCall[codec.Retry]},
		{name: "cancel_task", pattern: "POST /api/tasks/{id}/cancel", roles: door.Producers, is: mutation, answer: taskCall[codec.Cancel]},
		{name: "signal_task", pattern: "POST /api/tasks/{id}/signal", roles: door.Producers, is: mutation, answer: signalTask},
		{name: "act_on_tasks", pattern: "POST /api/tasks/actions", roles: door.Producers, is: mutation | extraTime, answer: s.actions.answer},
		{name: "run_batch", pattern: "POST /api/batch", roles: door.Producers | door.Workers, is: mutation | hasOps, answer: runBatch},

		{name: "claim_tasks", pattern: "POST /api/tasks/claim", roles: door.Workers, is: mutation, answer: claimTasks},
		{name: "claim_task", pattern: "POST /api/tasks/{id}/claim", roles: door.Workers, is: mutation, answer: claimTask},
		{name: "complete_task", pattern: "POST /api/tasks/{id}/complete", roles: door.Workers, is: mutation | rateFree, answer: completeTask},
		{name: "fail_task", pattern: "POST /api/tasks/{id}/fail", roles: door.Workers, is: mutation | rateFree, answer: taskCall[codec.Fail]},
		{name: "extend_task", pattern: "POST /api/tasks/{id}/extend", roles: door.Workers, is: mutation | rateFree, answer: taskCall[codec.Extend]},
		{name: "add_steps", pattern: "POST /api/tasks/{id}/steps", roles: door.Workers, is: mutation, answer: taskCall[codec.AddSteps]},
		{name: "release_task", pattern: "POST /api/tasks/{id}/release", roles: door.Workers, is: mutation | rateFree, answer: taskCall[codec.Release]},

		{name: "get_finalization", pattern: "GET /api/tasks/{id}/finalization", roles: door.EveryRole, is: noParams | rateFree, answer: getFinalization},
		{name: "claim_finalization", pattern: "POST /api/tasks/{id}/finalization/claim", roles: door.Workers, is: mutation | rateFree, answer: finalizationCall[codec.ClaimFinalization]},
		{name: "extend_finalization", pattern: "POST /api/tasks/{id}/finalization/extend", roles: door.Workers, is: mutation | rateFree, answer: finalizationCall[codec.ExtendFinalization]},
		{name: "release_finalization", pattern: "POST /api/tasks/{id}/finalization/release", roles: door.Workers, is: mutation | rateFree, answer: finalizationCall[codec.ReleaseFinalization]},
		{name: "finalize_task", pattern: "POST /api/tasks/{id}/finalize", roles: door.Workers, is: mutation | rateFree, answer: finalizationCall[codec.Finalize]},

		{name: "list_types", pattern: "GET /api/types", roles: door.EveryRole, is: readsMuch, answer: listTypes},
		{name: "get_type", pattern: "GET /api/types/{type}", roles: door.EveryRole, answer: getType},
		{name: "change_type", pattern: "PATCH /api/types/{type}", roles: door.Operators, is: mutation, answer: changeType},
		{name: "list_shares", pattern: "GET /api/types/{type}/shares", roles: door.EveryRole, is: readsMuch, answer: listShares},
		{name: "set_share", pattern: "PUT /api/types/{type}/shares/{share_key}", roles: door.Operators, is: mutation, answer: setShare},
		{name: "delete_share", pattern: "DELETE /api/types/{type}/shares/{share_key}", roles: door.Operators, is: mutation, answer: deleteShare},
		{name: "get_defaults", pattern: "GET /api/defaults", roles: door.EveryRole, is: noParams, answer: getDefaults},
		{name: "change_defaults", pattern: "PATCH /api/defaults", roles: door.Operators, is: mutation, answer: changeDefaults},
		{name: "list_schedules", pattern: "GET /api/schedules", roles: door.EveryRole, is: readsMuch, answer: listSchedules},
		{name: "get_schedule", pattern: "GET /api/schedules/{name}", roles: door.EveryRole, answer: getSchedule},
		{name: "list_slots", pattern: "GET /api/slots", roles: door.EveryRole, is: answeredHere | readsMuch, answer: listSlots},
		{name: "set_schedule", pattern: "PUT /api/schedules/{name}", roles: door.Operators, is: mutation, answer: setSchedule},
		{name: "delete_schedule", pattern: "DELETE /api/schedules/{name}", roles: door.Operators, is: mutation, answer: deleteSchedule},
		{name: "follow_events", pattern: "GET /api/events", roles: door.EveryRole, is: readsMuch, answer: s.streams.answer, here: wantsStream},
		{name: "list_task_events", pattern: "GET /api/tasks/{id}/events", roles: door.EveryRole, is: noParams | readsMuch, answer: listTaskEvents},
		{name: "list_workers", pattern: "GET /api/workers", roles: door.EveryRole, is: noParams | needsAllTypes | readsMuch, answer: listWorkers},
		{name: "get_history", pattern: "GET /api/history", roles: door.EveryRole, is: readsMuch, answer: showHistory},
		{name: "get_stats", pattern: "GET /api/stats", roles: door.EveryRole, is: noParams | readsMuch, answer: getStats},

		{name: "get_cluster", pattern: "GET /api/cluster", roles: door.Operators, is: noParams | needsAllTypes | withoutLeader | readsMuch, answer: getCluster},
		{name: "join_node", pattern: "POST /api/cluster/join", roles: door.Operators, is: mutation | needsAllTypes, answer: joinNode},
		{name: "remove_node", pattern: "POST /api/cluster/remove", roles: door.Operators, is: mutation | needsAllTypes, answer: removeNode},
		{name: "promote_node", pattern: "POST /api/cluster/promote", roles: door.Operators, is: mutation | needsAllTypes, answer: promoteNode},
		{name: "demote_node", pattern: "POST /api/cluster/demote", roles: door.Operators, is: mutation | needsAllTypes, answer: demoteNode},
		{name: "transfer_leadership", pattern: "POST /api/cluster/transfer", roles: door.Operators, is: mutation | needsAllTypes, answer: transferLeadership},
		{name: "upgrade_cluster", pattern: "POST /api/cluster/upgrade", roles: door.Operators, is: mutation | needsAllTypes, answer: upgradeCluster},
		{name: "get_hashes", pattern: "GET /api/cluster/hash", roles: door.Operators, is: noParams | needsAllTypes | readsMuch, answer: getHashes},
		{name: "list_join_tokens", pattern: "GET /api/cluster/tokens", roles: door.Operators, is: noParams | needsAllTypes | readsMuch, answer: listJoinTokens},
		{name: "set_join_token", pattern: "POST /api/cluster/tokens", roles: door.Operators, is: mutation | needsAllTypes, answer: setJoinToken},
		{name: "revoke_join_token", pattern: "POST /api/cluster/tokens/revoke", roles: door.Operators, is: mutation | needsAllTypes, answer: revokeJoinToken},

		{name: "take_snapshot", pattern: "POST /api/snapshots", roles: door.Operators, is: mutation | needsAllTypes | extraTime, answer: takeSnapshot},
		{name: "save_snapshot", pattern: "GET /api/snapshots/latest", roles: door.Operators, is: noParams | answeredHere | needsAllTypes, answer: s.backups.save},
		{name: "restore_snapshot", pattern: "POST /api/restore", roles: door.Operators, is: mutation | answeredHere | needsAllTypes, answer: restoreSnapshot, takeOver: s.backups.takeOver},
		{name: "reload_files", pattern: "POST /api/reload", roles: door.Operators, is: mutation | answeredHere | needsAllTypes, answer: s.reload},
		{name: "list_keys", pattern: "GET /api/keys", roles: door.Operators, is: answeredHere | needsAllTypes | readsMuch, answer: s.keyList},

		{name: "get_health", pattern: "GET /healthz", roles: door.Anybody, is: answeredHere | ignoresParams | whileDraining | anyHost, answer: s.health},
		{name: "get_readiness", pattern: "GET /readyz", roles: door.Anybody, is: answeredHere | ignoresParams | whileDraining | anyHost, answer: s.ready},
		{name: "get_metrics", pattern: "GET /metrics", roles: door.EveryRole, is: answeredHere | needsAllTypes | ignoresParams | whileDraining | readsMuch, answer: s.showMetrics},
		{name: "get_openapi", pattern: "GET /openapi.json", roles: door.Anybody, is: answeredHere | ignoresParams, answer: s.openAPI},

		{name: "get_root", pattern: "GET /", roles: door.Anybody, is: answeredHere | ignoresParams | anyOrigin, answer: s.root},
		{name: "get_page_without_slash", pattern: "GET /ui", roles: door.Anybody, is: answeredHere | ignoresParams | anyOrigin, answer: s.withoutSlash},
		{name: "get_page", pattern: "GET /ui/{file}", roles: door.Anybody, is: answeredHere | ignoresParams | anyOrigin, answer: s.page},
		{name: "get_session", pattern: "GET /ui/session", roles: door.Anybody, is: answeredHere | ignoresParams | noStore, answer: s.session},
		{name: "log_in", pattern: "POST /ui/login", roles: door.Anybody, is: answeredHere | ignoresParams | noStore, answer: s.login},
		{name: "log_out", pattern: "POST /ui/logout", roles: door.Anybody, is: answeredHere | ignoresParams | noStore, answer: s.logout},
	}
}

// call describes one call of the API.
type call struct {
	name string // the label of its metrics, and its operationId in openapi.yaml
	// pattern is its method and path. GET includes HEAD, whose answer is written without a body. A path may have one
	// variable, in braces: a task's id, possibly with more path after it, or the last part. Those of shares have two.
	pattern string
	roles   door.Roles // the roles that may make it
	is      trait
	// answer answers it on this node.
	answer func(*request)
	// here reports whether the node that the request reaches answers it, even if it is not the leader. nil: the trait
	// answeredHere decides.
	here func(*request) bool
	// takeOver, unless it is nil, is called when the request has been answered. If it returns true, it has taken over
	// the connection, and sends and counts the answer itself.
	takeOver func(*request) bool
	sqs      bool // it is one of SQS

	counts meter.Call
}

// trait is a set of properties of a call.
type trait uint16

const (
	// mutation says that the call may change the state.
	mutation trait = 1 << iota
	// answeredHere says that the node that the call reaches answers it, even if it is not the leader.
	answeredHere
	// rateFree says that the call does not count for a key's rate, because a worker whose extends were refused would
	// lose its leases. Whether a batch counts depends on its ops.
	rateFree
	// needsAllTypes says that the call concerns all task types at once, so that a key with task_types must not make it. For
	// other calls the types are checked when they are answered.
	needsAllTypes
	// ignoresParams says that unknown parameters are ignored.
	ignoresParams
	// whileDraining says that the call is answered even while the server drains.
	whileDraining
	// anyHost says that the call is answered whatever its Host header is.
	anyHost
	// hasOps says that the body has ops, each of which stands for a call.
	hasOps
	// extraTime says that the leader may take up to slowTime.
	extraTime
	// withoutLeader says that, if there is no leader, the node that the call reaches answers it.
	withoutLeader
	// preflight says that the call asks which methods a path has.
	preflight
	// anyOrigin says that pages of other origins may link to the call, because every client gets the same answer.
	anyOrigin
	// noStore says that the answer must not be cached anywhere, whatever it is.
	noStore
	// noParams says that the call itself takes no parameters.
	noParams
	// readsMuch says that the call may read much more than it shows, so that only a few may run at a time.
	readsMuch
)

// slowTime bounds a slow call on the leader, which then answers with what it has done. The entry under way may take
// up to Config.Wait longer.
const slowTime = 25 * time.Second

// has reports whether the call has one of the traits.
func (c *call) has(t trait) bool { return c.is&t != 0 }

// run answers the request on this node.
func (c *call) run(r *request) {
	if !c.has(noParams) || r.noParams() {
		c.answer(r)
	}
}

// String returns the name.
func (c *call) String() string { return c.name }

// table holds the calls of a server. It is never changed.
type table struct {
	all   []*call
	paths pathTable
	none  *call // for an unknown path or method
	// ops are the calls that an op of a batch may stand for.
	ops struct{ submit, claim, complete, fail, extend, release, retry, cancel, delete, unknown *call }
}

// newTable returns the table of calls and registers them in metrics.
func newTable(calls []call, metrics *meter.Metrics) *table {
	t := &table{none: &call{name: "none", roles: door.EveryRole, is: answeredHere}}
	t.none.counts = metrics.Call(t.none.name)
	options := &call{name: "options", roles: door.Anybody, is: answeredHere | preflight, answer: (*request).options}
	for i := range calls {
		t.all = append(t.all, &calls[i])
	}
	t.all = append(t.all, options)
	byName := make(map[string]*call)
	for _, c := range t.all {
		c.counts = metrics.Call(c.name)
		byName[c.name] = c
	}
	t.paths = newPaths(t.all, options, t.none)
	o := &t.ops
	o.submit, o.claim, o.complete = byName["submit_tasks"], byName["claim_tasks"], byName["complete_task"]
	o.fail, o.extend, o.release = byName["fail_task"], byName["extend_task"], byName["release_task"]
	o.retry, o.cancel, o.delete = byName["retry_task"], byName["cancel_task"], byName["delete_task"]
	o.unknown = &call{name: "unknown", roles: door.Operators, is: mutation} // unknown ops require the operator role
	return t
}

// ofOp returns the call that an op of a batch stands for.
func (t *table) ofOp(op codec.Body) *call {
	switch op.(type) {
	case *codec.SubmitOne:
		return t.ops.submit
	case *codec.Claim:
		return t.ops.claim
	case *codec.Complete:
		return t.ops.complete
	case *codec.Fail:
		return t.ops.fail
	case *codec.Extend:
		return t.ops.extend
	case *codec.Release:
		return t.ops.release
	case *codec.Retry:
		return t.ops.retry
	case *codec.Cancel:
		return t.ops.cancel
	case *codec.Delete:
		return t.ops.delete
	}
	return t.ops.unknown
}
