package api

import "github.com/claimq/claimq/api/keyring"

// calls returns the one table of calls: a call is one row, and no row's place means
// anything.
func (s *Server) calls() []call {
	return []call{
		{name: "submit_tasks", pattern: "POST /api/tasks", roles: keyring.Producers, is: mutation, answer: Submit},
		{name: "get_task", pattern: "GET /api/tasks/{id}", roles: keyring.EveryRole, answer: Get, held: HeldGet},
		{name: "get_task_by_key", pattern: "GET /api/tasks/by-key/{key}", roles: keyring.EveryRole, answer: GetByKey, held: HeldGet},
		{name: "list_tasks", pattern: "GET /api/tasks", roles: keyring.EveryRole, answer: List},
		{name: "list_failures", pattern: "GET /api/failures", roles: keyring.EveryRole, answer: Failures},
		{name: "explain_task", pattern: "GET /api/tasks/{id}/why", roles: keyring.EveryRole, answer: Why},
		{name: "change_task", pattern: "PATCH /api/tasks/{id}", roles: keyring.Producers, is: mutation, answer: Patch},
		{name: "delete_task", pattern: "DELETE /api/tasks/{id}", roles: keyring.Producers, is: mutation, answer: Delete},
		{name: "retry_task", pattern: "POST /api/tasks/{id}/retry", roles: keyring.Producers, is: mutation, answer: Retry},
		{name: "cancel_task", pattern: "POST /api/tasks/{id}/cancel", roles: keyring.Producers, is: mutation, answer: Cancel},
		{name: "act_on_tasks", pattern: "POST /api/tasks/actions", roles: keyring.Producers, is: mutation | slow, answer: s.actions.Answer},
		{name: "run_batch", pattern: "POST /api/batch", roles: keyring.Producers | keyring.Workers, is: mutation | batched, answer: Batch},

		{name: "claim_tasks", pattern: "POST /api/tasks/claim", roles: keyring.Workers, is: mutation, answer: Claim, held: HeldClaim},
		{name: "claim_task", pattern: "POST /api/tasks/{id}/claim", roles: keyring.Workers, is: mutation, answer: ClaimTask},
		{name: "complete_task", pattern: "POST /api/tasks/{id}/complete", roles: keyring.Workers, is: mutation | uncounted, answer: Complete},
		{name: "fail_task", pattern: "POST /api/tasks/{id}/fail", roles: keyring.Workers, is: mutation | uncounted, answer: Fail},
		{name: "extend_task", pattern: "POST /api/tasks/{id}/extend", roles: keyring.Workers, is: mutation | uncounted, answer: Extend},
		{name: "release_task", pattern: "POST /api/tasks/{id}/release", roles: keyring.Workers, is: mutation | uncounted, answer: Release},

		{name: "get_finalization", pattern: "GET /api/tasks/{id}/finalization", roles: keyring.EveryRole, is: uncounted, answer: Finalization},
		{name: "claim_finalization", pattern: "POST /api/tasks/{id}/finalization/claim", roles: keyring.Workers, is: mutation | uncounted, answer: ClaimFinalization},
		{name: "extend_finalization", pattern: "POST /api/tasks/{id}/finalization/extend", roles: keyring.Workers, is: mutation | uncounted, answer: ExtendFinalization},
		{name: "release_finalization", pattern: "POST /api/tasks/{id}/finalization/release", roles: keyring.Workers, is: mutation | uncounted, answer: ReleaseFinalization},
		{name: "finalize_task", pattern: "POST /api/tasks/{id}/finalize", roles: keyring.Workers, is: mutation | uncounted, answer: Finalize},

		{name: "list_types", pattern: "GET /api/types", roles: keyring.EveryRole, answer: Types},
		{name: "get_type", pattern: "GET /api/types/{type}", roles: keyring.EveryRole, answer: Type},
		{name: "change_type", pattern: "PATCH /api/types/{type}", roles: keyring.Operators, is: mutation, answer: SetType},
		{name: "get_defaults", pattern: "GET /api/defaults", roles: keyring.EveryRole, answer: Defaults},
		{name: "change_defaults", pattern: "PATCH /api/defaults", roles: keyring.Operators, is: mutation, answer: SetDefaults},
		{name: "list_schedules", pattern: "GET /api/schedules", roles: keyring.EveryRole, answer: Schedules},
		{name: "get_schedule", pattern: "GET /api/schedules/{name}", roles: keyring.EveryRole, answer: Schedule},
		{name: "list_slots", pattern: "GET /api/slots", roles: keyring.EveryRole, is: local, answer: Slots},
		{name: "set_schedule", pattern: "PUT /api/schedules/{name}", roles: keyring.Operators, is: mutation, answer: SetSchedule},
		{name: "delete_schedule", pattern: "DELETE /api/schedules/{name}", roles: keyring.Operators, is: mutation, answer: DeleteSchedule},
		{name: "follow_events", pattern: "GET /api/events", roles: keyring.EveryRole, answer: s.streams.Answer, here: Streamed},
		{name: "list_task_events", pattern: "GET /api/tasks/{id}/events", roles: keyring.EveryRole, answer: TaskEvents},
		{name: "list_workers", pattern: "GET /api/workers", roles: keyring.EveryRole, is: whole, answer: Workers},
		{name: "get_history", pattern: "GET /api/history", roles: keyring.EveryRole, is: local, answer: s.showHistory},
		{name: "get_stats", pattern: "GET /api/stats", roles: keyring.EveryRole, answer: Stats},

		{name: "get_cluster", pattern: "GET /api/cluster", roles: keyring.Operators, is: whole | leaderless, answer: Cluster},
		{name: "join_node", pattern: "POST /api/cluster/join", roles: keyring.Operators, is: mutation | whole, answer: JoinNode},
		{name: "remove_node", pattern: "POST /api/cluster/remove", roles: keyring.Operators, is: mutation | whole, answer: RemoveNode},
		{name: "promote_node", pattern: "POST /api/cluster/promote", roles: keyring.Operators, is: mutation | whole, answer: PromoteNode},
		{name: "demote_node", pattern: "POST /api/cluster/demote", roles: keyring.Operators, is: mutation | whole, answer: DemoteNode},
		{name: "transfer_leadership", pattern: "POST /api/cluster/transfer", roles: keyring.Operators, is: mutation | whole, answer: Transfer},
		{name: "upgrade_cluster", pattern: "POST /api/cluster/upgrade", roles: keyring.Operators, is: mutation | whole, answer: Upgrade},
		{name: "get_hashes", pattern: "GET /api/cluster/hash", roles: keyring.Operators, is: whole, answer: Hashes},
		{name: "list_join_tokens", pattern: "GET /api/cluster/tokens", roles: keyring.Operators, is: whole, answer: JoinTokens},
		{name: "set_join_token", pattern: "POST /api/cluster/tokens", roles: keyring.Operators, is: mutation | whole, answer: SetJoinToken},
		{name: "revoke_join_token", pattern: "POST /api/cluster/tokens/revoke", roles: keyring.Operators, is: mutation | whole, answer: RevokeJoinToken},

		{name: "take_snapshot", pattern: "POST /api/snapshots", roles: keyring.Operators, is: mutation | whole | slow, answer: TakeSnapshot},
		{name: "save_snapshot", pattern: "GET /api/snapshots/latest", roles: keyring.Operators, is: local | whole, answer: s.backups.Save},
		{name: "restore_snapshot", pattern: "POST /api/restore", roles: keyring.Operators, is: mutation | local | whole, answer: Restore, takeOver: s.backups.TakeOver},
		{name: "reload_files", pattern: "POST /api/reload", roles: keyring.Operators, is: mutation | local | whole, answer: s.reload},
		{name: "list_keys", pattern: "GET /api/keys", roles: keyring.Operators, is: local | whole, answer: s.keyList},

		{name: "get_health", pattern: "GET /healthz", roles: keyring.Anybody, is: local | probe | always | anyHost, answer: s.health},
		{name: "get_readiness", pattern: "GET /readyz", roles: keyring.Anybody, is: local | probe | always | anyHost, answer: s.ready},
		{name: "get_metrics", pattern: "GET /metrics", roles: keyring.EveryRole, is: local | whole | probe | always, answer: s.showMetrics},
		{name: "get_openapi", pattern: "GET /openapi.json", roles: keyring.Anybody, is: local | probe, answer: s.openAPI},

		{name: "get_root", pattern: "GET /", roles: keyring.Anybody, is: local | probe | linked, answer: s.root},
		{name: "get_page_without_slash", pattern: "GET /ui", roles: keyring.Anybody, is: local | probe | linked, answer: s.withoutSlash},
		{name: "get_page", pattern: "GET /ui/{file}", roles: keyring.Anybody, is: local | probe | linked, answer: s.page},
		{name: "get_session", pattern: "GET /ui/session", roles: keyring.Anybody, is: local | probe | unkept, answer: s.session},
		{name: "log_in", pattern: "POST /ui/login", roles: keyring.Anybody, is: local | probe | unkept, answer: s.login},
		{name: "log_out", pattern: "POST /ui/logout", roles: keyring.Anybody, is: local | probe | unkept, answer: s.logout},
	}
}
