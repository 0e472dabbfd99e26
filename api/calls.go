package api

import (
	"github.com/claimq/claimq/api/callbody"
	"github.com/claimq/claimq/api/keyring"
)

// call is one call of the API: its place in routes.
type call uint8

const (
	callNone call = iota // no such path or method

	callSubmit
	callGet
	callGetByKey
	callList
	callWhy
	callPatch
	callDelete
	callRetry
	callCancel
	callAct
	callBatch

	callClaim
	callClaimTask
	callComplete
	callFail
	callExtend
	callRelease

	callFinalization
	callClaimFinalization
	callExtendFinalization
	callReleaseFinalization
	callFinalize

	callTypes
	callSetType
	callSchedules
	callSchedule
	callSetSchedule
	callDeleteSchedule
	callEvents
	callTaskEvents
	callWorkers
	callStats

	callCluster
	callJoinNode
	callRemoveNode
	callPromoteNode
	callDemoteNode
	callTransfer
	callUpgrade
	callHashes
	callJoinTokens
	callSetJoinToken
	callRevokeJoinToken

	callTakeSnapshot
	callSaveSnapshot
	callRestore
	callReload
	callKeys

	callOptions
	callHealth
	callReady
	callMetrics
	callOpenAPI

	callCount
)

// route is all that is known of a call.
type route struct {
	name string // the label of its metrics, and its operationId in openapi.yaml
	// pattern is its method and its path. GET is HEAD, too: the answer's body is left
	// out when it is written. A path may have one variable, in braces: the id of a task,
	// with more behind it or not, or the last part.
	pattern string
	roles   keyring.Roles // who may make it
	is      trait
	// answer answers it with this node's own means.
	answer func(*request)
}

// trait is a set of what may be so of a call.
type trait uint8

const (
	// mutation: it may change the state.
	mutation trait = 1 << iota
	// local: the node that it reaches answers it, whichever that is.
	local
	// uncounted: it is not counted against a key's rate, for a worker that may not
	// extend would lose its lease. That a batch is counted depends on its ops.
	uncounted
	// whole: it is about all task types at once, so a key with task_types may not make
	// it. What other calls touch is looked at when they are answered.
	whole
	// probe: parameters that it does not have do not matter.
	probe
)

func (c call) has(t trait) bool { return routes[c].is&t != 0 }

func (c call) String() string { return routes[c].name }

// routes is the one table of calls. It is never changed: init fills it in, as what
// answers them looks them up in turn.
var routes [callCount]route

func init() {
	routes = [callCount]route{
		callNone: {name: "none", roles: keyring.EveryRole, is: local},

		callSubmit:   {name: "submit", pattern: "POST /api/tasks", roles: keyring.Producers, is: mutation, answer: (*request).submit},
		callGet:      {name: "get", pattern: "GET /api/tasks/{id}", roles: keyring.EveryRole, answer: (*request).get},
		callGetByKey: {name: "get_by_key", pattern: "GET /api/tasks/by-key/{key}", roles: keyring.EveryRole, answer: (*request).get},
		callList:     {name: "list", pattern: "GET /api/tasks", roles: keyring.EveryRole, answer: (*request).list},
		callWhy:      {name: "why", pattern: "GET /api/tasks/{id}/why", roles: keyring.EveryRole, answer: (*request).why},
		callPatch:    {name: "patch", pattern: "PATCH /api/tasks/{id}", roles: keyring.Producers, is: mutation, answer: func(r *request) { r.act(callbody.NewPatch(r.target.id)) }},
		callDelete:   {name: "delete", pattern: "DELETE /api/tasks/{id}", roles: keyring.Producers, is: mutation, answer: (*request).delete},
		callRetry:    {name: "retry", pattern: "POST /api/tasks/{id}/retry", roles: keyring.Producers, is: mutation, answer: func(r *request) { r.act(callbody.NewRetry(r.target.id)) }},
		callCancel:   {name: "cancel", pattern: "POST /api/tasks/{id}/cancel", roles: keyring.Producers, is: mutation, answer: func(r *request) { r.act(callbody.NewCancel(r.target.id)) }},
		callAct:      {name: "act", pattern: "POST /api/tasks/actions", roles: keyring.Producers, is: mutation, answer: (*request).actions},
		callBatch:    {name: "batch", pattern: "POST /api/batch", roles: keyring.Producers | keyring.Workers, is: mutation, answer: (*request).batch},

		callClaim:     {name: "claim", pattern: "POST /api/tasks/claim", roles: keyring.Workers, is: mutation, answer: (*request).claim},
		callClaimTask: {name: "claim_task", pattern: "POST /api/tasks/{id}/claim", roles: keyring.Workers, is: mutation, answer: (*request).claimTask},
		callComplete:  {name: "complete", pattern: "POST /api/tasks/{id}/complete", roles: keyring.Workers, is: mutation | uncounted, answer: (*request).complete},
		callFail:      {name: "fail", pattern: "POST /api/tasks/{id}/fail", roles: keyring.Workers, is: mutation | uncounted, answer: func(r *request) { r.act(callbody.NewFail(r.target.id)) }},
		callExtend:    {name: "extend", pattern: "POST /api/tasks/{id}/extend", roles: keyring.Workers, is: mutation | uncounted, answer: func(r *request) { r.act(callbody.NewExtend(r.target.id)) }},
		callRelease:   {name: "release", pattern: "POST /api/tasks/{id}/release", roles: keyring.Workers, is: mutation | uncounted, answer: func(r *request) { r.act(callbody.NewRelease(r.target.id)) }},

		callFinalization:        {name: "finalization", pattern: "GET /api/tasks/{id}/finalization", roles: keyring.EveryRole, is: uncounted, answer: (*request).finalization},
		callClaimFinalization:   {name: "claim_finalization", pattern: "POST /api/tasks/{id}/finalization/claim", roles: keyring.Workers, is: mutation | uncounted, answer: func(r *request) { r.actFinalization(callbody.NewClaimFinalization(r.target.id)) }},
		callExtendFinalization:  {name: "extend_finalization", pattern: "POST /api/tasks/{id}/finalization/extend", roles: keyring.Workers, is: mutation | uncounted, answer: func(r *request) { r.actFinalization(callbody.NewExtendFinalization(r.target.id)) }},
		callReleaseFinalization: {name: "release_finalization", pattern: "POST /api/tasks/{id}/finalization/release", roles: keyring.Workers, is: mutation | uncounted, answer: func(r *request) { r.actFinalization(callbody.NewReleaseFinalization(r.target.id)) }},
		callFinalize:            {name: "finalize", pattern: "POST /api/tasks/{id}/finalize", roles: keyring.Workers, is: mutation | uncounted, answer: func(r *request) { r.actFinalization(callbody.NewFinalize(r.target.id)) }},

		callTypes:          {name: "types", pattern: "GET /api/types", roles: keyring.EveryRole, answer: (*request).types},
		callSetType:        {name: "set_type", pattern: "PATCH /api/types/{type}", roles: keyring.Operators, is: mutation, answer: (*request).setType},
		callSchedules:      {name: "schedules", pattern: "GET /api/schedules", roles: keyring.EveryRole, answer: (*request).schedules},
		callSchedule:       {name: "schedule", pattern: "GET /api/schedules/{name}", roles: keyring.EveryRole, answer: (*request).schedule},
		callSetSchedule:    {name: "set_schedule", pattern: "PUT /api/schedules/{name}", roles: keyring.Operators, is: mutation, answer: (*request).setSchedule},
		callDeleteSchedule: {name: "delete_schedule", pattern: "DELETE /api/schedules/{name}", roles: keyring.Operators, is: mutation, answer: (*request).deleteSchedule},
		callEvents:         {name: "events", pattern: "GET /api/events", roles: keyring.EveryRole, answer: (*request).events},
		callTaskEvents:     {name: "task_events", pattern: "GET /api/tasks/{id}/events", roles: keyring.EveryRole, answer: (*request).taskEvents},
		callWorkers:        {name: "workers", pattern: "GET /api/workers", roles: keyring.EveryRole, is: whole, answer: (*request).workers},
		callStats:          {name: "stats", pattern: "GET /api/stats", roles: keyring.EveryRole, answer: (*request).stats},

		callCluster:         {name: "cluster", pattern: "GET /api/cluster", roles: keyring.Operators, is: whole, answer: (*request).cluster},
		callJoinNode:        {name: "join_node", pattern: "POST /api/cluster/join", roles: keyring.Operators, is: mutation | whole, answer: (*request).joinNode},
		callRemoveNode:      {name: "remove_node", pattern: "POST /api/cluster/remove", roles: keyring.Operators, is: mutation | whole, answer: (*request).removeNode},
		callPromoteNode:     {name: "promote_node", pattern: "POST /api/cluster/promote", roles: keyring.Operators, is: mutation | whole, answer: (*request).changeSuffrage},
		callDemoteNode:      {name: "demote_node", pattern: "POST /api/cluster/demote", roles: keyring.Operators, is: mutation | whole, answer: (*request).changeSuffrage},
		callTransfer:        {name: "transfer", pattern: "POST /api/cluster/transfer", roles: keyring.Operators, is: mutation | whole, answer: (*request).transfer},
		callUpgrade:         {name: "upgrade", pattern: "POST /api/cluster/upgrade", roles: keyring.Operators, is: mutation | whole, answer: (*request).upgrade},
		callHashes:          {name: "hashes", pattern: "GET /api/cluster/hash", roles: keyring.Operators, is: whole, answer: (*request).hashes},
		callJoinTokens:      {name: "join_tokens", pattern: "GET /api/cluster/tokens", roles: keyring.Operators, is: whole, answer: (*request).joinTokens},
		callSetJoinToken:    {name: "set_join_token", pattern: "POST /api/cluster/tokens", roles: keyring.Operators, is: mutation | whole, answer: (*request).setJoinToken},
		callRevokeJoinToken: {name: "revoke_join_token", pattern: "POST /api/cluster/tokens/revoke", roles: keyring.Operators, is: mutation | whole, answer: (*request).revokeJoinToken},

		callTakeSnapshot: {name: "take_snapshot", pattern: "POST /api/snapshots", roles: keyring.Operators, is: mutation | whole, answer: (*request).takeSnapshot},
		callSaveSnapshot: {name: "save_snapshot", pattern: "GET /api/snapshots/latest", roles: keyring.Operators, is: local | whole, answer: (*request).saveSnapshot},
		callRestore:      {name: "restore", pattern: "POST /api/restore", roles: keyring.Operators, is: mutation | local | whole, answer: (*request).restore},
		callReload:       {name: "reload", pattern: "POST /api/reload", roles: keyring.Operators, is: mutation | local | whole, answer: (*request).reload},
		callKeys:         {name: "keys", pattern: "GET /api/keys", roles: keyring.Operators, is: local | whole, answer: (*request).keyList},

		callOptions: {name: "options", roles: keyring.Anybody, is: local, answer: (*request).options},
		callHealth:  {name: "health", pattern: "GET /healthz", roles: keyring.Anybody, is: local | probe, answer: (*request).health},
		callReady:   {name: "ready", pattern: "GET /readyz", roles: keyring.Anybody, is: local | probe, answer: (*request).ready},
		callMetrics: {name: "metrics", pattern: "GET /metrics", roles: keyring.EveryRole, is: local | whole | probe, answer: (*request).showMetrics},
		callOpenAPI: {name: "openapi", pattern: "GET /openapi.json", roles: keyring.Anybody, is: local | probe, answer: (*request).openAPI},
	}
	paths = newPaths()
}
