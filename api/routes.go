package api

import (
	"bytes"

	"github.com/claimq/claimq/api/wire"
)

// call is one call of the API; it is also the label of its metrics.
type call uint8

const (
	callNone call = iota // no such path or method
	callSubmit
	callClaim
	callClaimTask
	callComplete
	callFail
	callExtend
	callRelease
	callRetry
	callCancel
	callPatch
	callDelete
	callClaimFinalization
	callExtendFinalization
	callReleaseFinalization
	callFinalize
	callBatch
	callSetType
	callAct
	callSetSchedule
	callDeleteSchedule
	callJoinNode
	callRemoveNode
	callPromoteNode
	callDemoteNode
	callTransfer
	callUpgrade
	callSetJoinToken
	callRevokeJoinToken
	callTakeSnapshot
	callGet
	callGetByKey
	callList
	callWhy
	callFinalization
	callTaskEvents
	callEvents
	callTypes
	callWorkers
	callSchedules
	callSchedule
	callStats
	callCluster
	callHashes
	callJoinTokens
	callOptions
	callSaveSnapshot
	callRestore
	callReload
	callKeys
	callHealth
	callReady
	callMetrics
	callOpenAPI
	callCount
)

var callNames = [callCount]string{
	"none", "submit", "claim", "claim_task", "complete", "fail", "extend", "release", "retry", "cancel", "patch", "delete",
	"claim_finalization", "extend_finalization", "release_finalization", "finalize", "batch", "set_type",
	"act", "set_schedule", "delete_schedule",
	"join_node", "remove_node", "promote_node", "demote_node", "transfer", "upgrade", "set_join_token", "revoke_join_token", "take_snapshot", "get", "get_by_key", "list", "why", "finalization", "task_events", "events",
	"types", "workers", "schedules", "schedule", "stats", "cluster", "hashes", "join_tokens", "options", "save_snapshot", "restore", "reload", "keys", "health", "ready", "metrics", "openapi",
}

// local reports whether the call is always answered by the node it reached.
func (c call) local() bool { return c >= callOptions || c == callNone }

// mutation reports whether the call may change the state.
func (c call) mutation() bool {
	return c >= callSubmit && c <= callTakeSnapshot || c == callRestore || c == callReload
}

// verbs are the calls POST /api/tasks/{id}/VERB.
var verbs = map[string]call{
	"claim": callClaimTask, "complete": callComplete, "fail": callFail,
	"extend": callExtend, "release": callRelease, "retry": callRetry, "cancel": callCancel,
	"finalization/claim": callClaimFinalization, "finalization/extend": callExtendFinalization,
	"finalization/release": callReleaseFinalization, "finalize": callFinalize,
}

// views are the calls GET /api/tasks/{id}/VIEW.
var views = map[string]call{"why": callWhy, "events": callTaskEvents, "finalization": callFinalization}

// The values of Allow.
const (
	allowGet   = "GET, HEAD, OPTIONS"
	allowPost  = "POST, OPTIONS"
	allowList  = "GET, HEAD, POST, OPTIONS"
	allowTask  = "GET, HEAD, PATCH, DELETE, OPTIONS"
	allowPatch = "PATCH, OPTIONS"

	allowSchedule = "GET, HEAD, PUT, DELETE, OPTIONS"
)

// target is what a request is about.
type target struct {
	call  call
	id    uint64
	rest  []byte // of get_by_key the key, of set_type the type, of a schedule its name, still percent-encoded
	allow string // the path's methods, "" if there is no such path
}

// methods are the calls of a path's methods. HEAD is GET: the answer's body is
// left out when it is written.
type methods struct {
	get, post, put, patch, del call
	allow                      string
}

// fixed are the paths without variables.
var fixed = map[string]methods{
	"/api/tasks":                 {get: callList, post: callSubmit, allow: allowList},
	"/api/tasks/claim":           {post: callClaim, allow: allowPost},
	"/api/tasks/actions":         {post: callAct, allow: allowPost},
	"/api/batch":                 {post: callBatch, allow: allowPost},
	"/api/events":                {get: callEvents, allow: allowGet},
	"/api/types":                 {get: callTypes, allow: allowGet},
	"/api/workers":               {get: callWorkers, allow: allowGet},
	"/api/schedules":             {get: callSchedules, allow: allowGet},
	"/api/stats":                 {get: callStats, allow: allowGet},
	"/api/cluster":               {get: callCluster, allow: allowGet},
	"/api/cluster/join":          {post: callJoinNode, allow: allowPost},
	"/api/cluster/remove":        {post: callRemoveNode, allow: allowPost},
	"/api/cluster/promote":       {post: callPromoteNode, allow: allowPost},
	"/api/cluster/demote":        {post: callDemoteNode, allow: allowPost},
	"/api/cluster/transfer":      {post: callTransfer, allow: allowPost},
	"/api/cluster/upgrade":       {post: callUpgrade, allow: allowPost},
	"/api/cluster/hash":          {get: callHashes, allow: allowGet},
	"/api/cluster/tokens":        {get: callJoinTokens, post: callSetJoinToken, allow: allowList},
	"/api/snapshots":             {post: callTakeSnapshot, allow: allowPost},
	"/api/snapshots/latest":      {get: callSaveSnapshot, allow: allowGet},
	"/api/restore":               {post: callRestore, allow: allowPost},
	"/api/reload":                {post: callReload, allow: allowPost},
	"/api/keys":                  {get: callKeys, allow: allowGet},
	"/api/cluster/tokens/revoke": {post: callRevokeJoinToken, allow: allowPost},
	"/healthz":                   {get: callHealth, allow: allowGet},
	"/readyz":                    {get: callReady, allow: allowGet},
	"/metrics":                   {get: callMetrics, allow: allowGet},
	"/openapi.json":              {get: callOpenAPI, allow: allowGet},
}

// variable are the paths that end in a variable.
var variable = []struct {
	prefix  []byte
	name    string
	methods methods
	task    bool // it goes on after a task's id: verbs and views
}{
	{prefix: []byte("/api/tasks/by-key/"), name: "key", methods: methods{get: callGetByKey, allow: allowGet}},
	{prefix: []byte("/api/tasks/"), name: "id", methods: methods{get: callGet, patch: callPatch, del: callDelete, allow: allowTask}, task: true},
	{prefix: []byte("/api/types/"), name: "type", methods: methods{patch: callSetType, allow: allowPatch}},
	{prefix: []byte("/api/schedules/"), name: "name", methods: methods{get: callSchedule, put: callSetSchedule, del: callDeleteSchedule, allow: allowSchedule}},
}

// route finds the call of a method and a path as sent. A refusal is one of
// not_found, method_not_allowed, or an id that is none.
func route(method, path []byte) (target, *refusal) {
	if m, ok := fixed[string(path)]; ok {
		return pick(method, target{}, m)
	}
	for i := range variable {
		v := &variable[i]
		switch rest, ok := bytes.CutPrefix(path, v.prefix); {
		case !ok:
		case v.task:
			return routeTask(method, rest, v.methods)
		default:
			return pick(method, target{rest: rest}, v.methods)
		}
	}
	return target{}, refuse(wire.CodeNotFound)
}

// routeTask finds the call of what follows /api/tasks/: an id, whose methods are
// m, and perhaps a verb.
func routeTask(method, rest []byte, m methods) (target, *refusal) {
	idText, verb, hasVerb := bytes.Cut(rest, []byte{'/'})
	if hasVerb {
		if view, ok := views[string(verb)]; ok {
			m = methods{get: view, allow: allowGet}
		} else if c, ok := verbs[string(verb)]; ok {
			m = methods{post: c, allow: allowPost}
		} else {
			return target{}, refuse(wire.CodeNotFound)
		}
	}
	t, refused := pick(method, target{}, m)
	if refused != nil || t.call == callOptions {
		return t, refused
	}
	id, ok := parseID(idText)
	if !ok {
		return t, refuseParam("id", "Invalid id: an integer from 1 to 9007199254740991, in digits, is allowed")
	}
	t.id = id
	return t, nil
}

// pick chooses the call by the method.
func pick(method []byte, t target, m methods) (target, *refusal) {
	t.allow = m.allow
	switch string(method) {
	case "GET", "HEAD":
		t.call = m.get
	case "POST":
		t.call = m.post
	case "PUT":
		t.call = m.put
	case "PATCH":
		t.call = m.patch
	case "DELETE":
		t.call = m.del
	case "OPTIONS":
		t.call = callOptions
	}
	if t.call == callNone {
		return t, refuse(wire.CodeMethodNotAllowed)
	}
	return t, nil
}

// parseID reads an id in its canonical form: digits, no leading zero.
func parseID(b []byte) (uint64, bool) {
	if len(b) == 0 || len(b) > 16 || b[0] == '0' {
		return 0, false
	}
	var id uint64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		id = id*10 + uint64(c-'0')
	}
	return id, id <= idMax
}
