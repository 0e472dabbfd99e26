package api

import (
	"github.com/claimq/claimq/api/callbody"
	"github.com/claimq/claimq/api/exchange"
	"github.com/claimq/claimq/api/keyring"
)

// calls returns the table of all calls, one row each, in any order.
func (s *Server) calls() []exchange.Call {
	return []exchange.Call{
		{Name: "submit_tasks", Pattern: "POST /api/tasks", Roles: keyring.Producers, Is: exchange.Mutation, Answer: Submit},
		{Name: "get_task", Pattern: "GET /api/tasks/{id}", Roles: keyring.EveryRole, Answer: Get, Held: HeldGet},
		{Name: "get_task_by_key", Pattern: "GET /api/tasks/by-key/{key}", Roles: keyring.EveryRole, Answer: GetByKey, Held: HeldGet},
		{Name: "list_tasks", Pattern: "GET /api/tasks", Roles: keyring.EveryRole, Is: exchange.Long, Answer: List},
		{Name: "list_failures", Pattern: "GET /api/failures", Roles: keyring.EveryRole, Is: exchange.Long, Answer: Failures},
		{Name: "explain_task", Pattern: "GET /api/tasks/{id}/why", Roles: keyring.EveryRole, Is: exchange.Bare | exchange.Long, Answer: Why},
		{Name: "change_task", Pattern: "PATCH /api/tasks/{id}", Roles: keyring.Producers, Is: exchange.Mutation, Answer: ofTask[callbody.Patch]},
		{Name: "delete_task", Pattern: "DELETE /api/tasks/{id}", Roles: keyring.Producers, Is: exchange.Mutation, Answer: Delete},
		{Name: "retry_task", Pattern: "POST /api/tasks/{id}/retry", Roles: keyring.Producers, Is: exchange.Mutation, Answer: ofTask[callbody.Retry]},
		{Name: "cancel_task", Pattern: "POST /api/tasks/{id}/cancel", Roles: keyring.Producers, Is: exchange.Mutation, Answer: ofTask[callbody.Cancel]},
		{Name: "act_on_tasks", Pattern: "POST /api/tasks/actions", Roles: keyring.Producers, Is: exchange.Mutation | exchange.Slow, Answer: s.actions.Answer},
		{Name: "run_batch", Pattern: "POST /api/batch", Roles: keyring.Producers | keyring.Workers, Is: exchange.Mutation | exchange.Batched, Answer: Batch},

		{Name: "claim_tasks", Pattern: "POST /api/tasks/claim", Roles: keyring.Workers, Is: exchange.Mutation, Answer: Claim, Held: HeldClaim},
		{Name: "claim_task", Pattern: "POST /api/tasks/{id}/claim", Roles: keyring.Workers, Is: exchange.Mutation, Answer: ClaimTask},
		{Name: "complete_task", Pattern: "POST /api/tasks/{id}/complete", Roles: keyring.Workers, Is: exchange.Mutation | exchange.Uncounted, Answer: Complete},
		{Name: "fail_task", Pattern: "POST /api/tasks/{id}/fail", Roles: keyring.Workers, Is: exchange.Mutation | exchange.Uncounted, Answer: ofTask[callbody.Fail]},
		{Name: "extend_task", Pattern: "POST /api/tasks/{id}/extend", Roles: keyring.Workers, Is: exchange.Mutation | exchange.Uncounted, Answer: ofTask[callbody.Extend]},
		{Name: "release_task", Pattern: "POST /api/tasks/{id}/release", Roles: keyring.Workers, Is: exchange.Mutation | exchange.Uncounted, Answer: ofTask[callbody.Release]},

		{Name: "get_finalization", Pattern: "GET /api/tasks/{id}/finalization", Roles: keyring.EveryRole, Is: exchange.Bare | exchange.Uncounted, Answer: Finalization},
		{Name: "claim_finalization", Pattern: "POST /api/tasks/{id}/finalization/claim", Roles: keyring.Workers, Is: exchange.Mutation | exchange.Uncounted, Answer: finalizes[callbody.ClaimFinalization]},
		{Name: "extend_finalization", Pattern: "POST /api/tasks/{id}/finalization/extend", Roles: keyring.Workers, Is: exchange.Mutation | exchange.Uncounted, Answer: finalizes[callbody.ExtendFinalization]},
		{Name: "release_finalization", Pattern: "POST /api/tasks/{id}/finalization/release", Roles: keyring.Workers, Is: exchange.Mutation | exchange.Uncounted, Answer: finalizes[callbody.ReleaseFinalization]},
		{Name: "finalize_task", Pattern: "POST /api/tasks/{id}/finalize", Roles: keyring.Workers, Is: exchange.Mutation | exchange.Uncounted, Answer: finalizes[callbody.Finalize]},

		{Name: "list_types", Pattern: "GET /api/types", Roles: keyring.EveryRole, Is: exchange.Long, Answer: Types},
		{Name: "get_type", Pattern: "GET /api/types/{type}", Roles: keyring.EveryRole, Answer: Type},
		{Name: "change_type", Pattern: "PATCH /api/types/{type}", Roles: keyring.Operators, Is: exchange.Mutation, Answer: SetType},
		{Name: "get_defaults", Pattern: "GET /api/defaults", Roles: keyring.EveryRole, Is: exchange.Bare, Answer: Defaults},
		{Name: "change_defaults", Pattern: "PATCH /api/defaults", Roles: keyring.Operators, Is: exchange.Mutation, Answer: SetDefaults},
		{Name: "list_schedules", Pattern: "GET /api/schedules", Roles: keyring.EveryRole, Is: exchange.Long, Answer: Schedules},
		{Name: "get_schedule", Pattern: "GET /api/schedules/{name}", Roles: keyring.EveryRole, Answer: Schedule},
		{Name: "list_slots", Pattern: "GET /api/slots", Roles: keyring.EveryRole, Is: exchange.Local | exchange.Long, Answer: Slots},
		{Name: "set_schedule", Pattern: "PUT /api/schedules/{name}", Roles: keyring.Operators, Is: exchange.Mutation, Answer: SetSchedule},
		{Name: "delete_schedule", Pattern: "DELETE /api/schedules/{name}", Roles: keyring.Operators, Is: exchange.Mutation, Answer: DeleteSchedule},
		{Name: "follow_events", Pattern: "GET /api/events", Roles: keyring.EveryRole, Is: exchange.Long, Answer: s.streams.Answer, Here: Streamed},
		{Name: "list_task_events", Pattern: "GET /api/tasks/{id}/events", Roles: keyring.EveryRole, Is: exchange.Bare | exchange.Long, Answer: TaskEvents},
		{Name: "list_workers", Pattern: "GET /api/workers", Roles: keyring.EveryRole, Is: exchange.Bare | exchange.Whole | exchange.Long, Answer: Workers},
		{Name: "get_history", Pattern: "GET /api/history", Roles: keyring.EveryRole, Is: exchange.Local | exchange.Long, Answer: s.showHistory},
		{Name: "get_stats", Pattern: "GET /api/stats", Roles: keyring.EveryRole, Is: exchange.Bare | exchange.Long, Answer: Stats},

		{Name: "get_cluster", Pattern: "GET /api/cluster", Roles: keyring.Operators, Is: exchange.Bare | exchange.Whole | exchange.Leaderless | exchange.Long, Answer: Cluster},
		{Name: "join_node", Pattern: "POST /api/cluster/join", Roles: keyring.Operators, Is: exchange.Mutation | exchange.Whole, Answer: JoinNode},
		{Name: "remove_node", Pattern: "POST /api/cluster/remove", Roles: keyring.Operators, Is: exchange.Mutation | exchange.Whole, Answer: RemoveNode},
		{Name: "promote_node", Pattern: "POST /api/cluster/promote", Roles: keyring.Operators, Is: exchange.Mutation | exchange.Whole, Answer: PromoteNode},
		{Name: "demote_node", Pattern: "POST /api/cluster/demote", Roles: keyring.Operators, Is: exchange.Mutation | exchange.Whole, Answer: DemoteNode},
		{Name: "transfer_leadership", Pattern: "POST /api/cluster/transfer", Roles: keyring.Operators, Is: exchange.Mutation | exchange.Whole, Answer: Transfer},
		{Name: "upgrade_cluster", Pattern: "POST /api/cluster/upgrade", Roles: keyring.Operators, Is: exchange.Mutation | exchange.Whole, Answer: Upgrade},
		{Name: "get_hashes", Pattern: "GET /api/cluster/hash", Roles: keyring.Operators, Is: exchange.Bare | exchange.Whole | exchange.Long, Answer: Hashes},
		{Name: "list_join_tokens", Pattern: "GET /api/cluster/tokens", Roles: keyring.Operators, Is: exchange.Bare | exchange.Whole | exchange.Long, Answer: JoinTokens},
		{Name: "set_join_token", Pattern: "POST /api/cluster/tokens", Roles: keyring.Operators, Is: exchange.Mutation | exchange.Whole, Answer: SetJoinToken},
		{Name: "revoke_join_token", Pattern: "POST /api/cluster/tokens/revoke", Roles: keyring.Operators, Is: exchange.Mutation | exchange.Whole, Answer: RevokeJoinToken},

		{Name: "take_snapshot", Pattern: "POST /api/snapshots", Roles: keyring.Operators, Is: exchange.Mutation | exchange.Whole | exchange.Slow, Answer: TakeSnapshot},
		{Name: "save_snapshot", Pattern: "GET /api/snapshots/latest", Roles: keyring.Operators, Is: exchange.Bare | exchange.Local | exchange.Whole, Answer: s.backups.Save},
		{Name: "restore_snapshot", Pattern: "POST /api/restore", Roles: keyring.Operators, Is: exchange.Mutation | exchange.Local | exchange.Whole, Answer: Restore, TakeOver: s.backups.TakeOver},
		{Name: "reload_files", Pattern: "POST /api/reload", Roles: keyring.Operators, Is: exchange.Mutation | exchange.Local | exchange.Whole, Answer: s.reload},
		{Name: "list_keys", Pattern: "GET /api/keys", Roles: keyring.Operators, Is: exchange.Local | exchange.Whole | exchange.Long, Answer: s.keyList},

		{Name: "get_health", Pattern: "GET /healthz", Roles: keyring.Anybody, Is: exchange.Local | exchange.Probe | exchange.Always | exchange.AnyHost, Answer: s.health},
		{Name: "get_readiness", Pattern: "GET /readyz", Roles: keyring.Anybody, Is: exchange.Local | exchange.Probe | exchange.Always | exchange.AnyHost, Answer: s.ready},
		{Name: "get_metrics", Pattern: "GET /metrics", Roles: keyring.EveryRole, Is: exchange.Local | exchange.Whole | exchange.Probe | exchange.Always | exchange.Long, Answer: s.showMetrics},
		{Name: "get_openapi", Pattern: "GET /openapi.json", Roles: keyring.Anybody, Is: exchange.Local | exchange.Probe, Answer: s.openAPI},

		{Name: "get_root", Pattern: "GET /", Roles: keyring.Anybody, Is: exchange.Local | exchange.Probe | exchange.Linked, Answer: s.root},
		{Name: "get_page_without_slash", Pattern: "GET /ui", Roles: keyring.Anybody, Is: exchange.Local | exchange.Probe | exchange.Linked, Answer: s.withoutSlash},
		{Name: "get_page", Pattern: "GET /ui/{file}", Roles: keyring.Anybody, Is: exchange.Local | exchange.Probe | exchange.Linked, Answer: s.page},
		{Name: "get_session", Pattern: "GET /ui/session", Roles: keyring.Anybody, Is: exchange.Local | exchange.Probe | exchange.Unkept, Answer: s.session},
		{Name: "log_in", Pattern: "POST /ui/login", Roles: keyring.Anybody, Is: exchange.Local | exchange.Probe | exchange.Unkept, Answer: s.login},
		{Name: "log_out", Pattern: "POST /ui/logout", Roles: keyring.Anybody, Is: exchange.Local | exchange.Probe | exchange.Unkept, Answer: s.logout},
	}
}
