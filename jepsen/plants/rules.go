package plants

// Rules returns bugs in the rules of submitting, claiming, settling, seeing,
// scheduling and finalizing, of API keys and of tokens: no fault is needed to see them, the
// contract's rows (package contract) must. Rows names one that does.
func Rules() []Plant {
	return []Plant{
		{
			Name: "group-two-at-once", What: "a claimed task does not hold its group back", Rows: "3/group",
			edits: []edit{{"fsm/record/task.go", "if t.Options == nil || t.Status.Ended() {", "if t.Options == nil || t.Status.Ended() || t.Status == StatusClaimed {"}},
		},
		{
			Name: "group-head-skipped", What: "a scheduled task does not hold its group back", Rows: "8/order_group_head",
			edits: []edit{{"fsm/record/task.go", "if t.Options == nil || t.Status.Ended() {", "if t.Options == nil || t.Status.Ended() || t.Status == StatusScheduled {"}},
		},
		{
			Name: "no-max-claimed", What: "a type's claims are not counted by its limit", Rows: "4/types_max_claimed",
			edits: []edit{{"fsm/claimable/limits.go", "ts.record.Settings.Paused || ts.Slots() <= 0:", "ts.record.Settings.Paused:"}},
		},
		{
			Name: "bucket-never-empty", What: "a claim takes nothing out of its type's bucket", Rows: "4/types_rate_limit",
			edits: []edit{{"fsm/record/bucket.go", "r.BucketAt(t)-ClaimUnit, max(t, r.BucketT)", "r.BucketAt(t), max(t, r.BucketT)"}},
		},
		{
			Name: "pause-stops-claims-by-id", What: "a paused type's tasks cannot be claimed by id", Rows: "8/claim_by_id_pause",
			edits: []edit{{"fsm/claim.go", "	case ts.Slots() <= 0:\n		return ReasonLimitReached", "	case ts.Slots() <= 0 || ts.Record() != nil && ts.Record().Settings.Paused:\n		return ReasonLimitReached"}},
		},
		{
			Name: "attempts-left-off-by-one", What: "max_attempts_remaining lets in tasks with exactly so many left", Rows: "4/claim_max_attempts_remaining",
			edits: []edit{{"fsm/claimable/type.go", "ts.findQueue(left + 1)", "ts.findQueue(max(left, 1))"}},
		},
		{
			Name: "nothing-remembered", What: "a removed task leaves nothing, so its repeats are not known", Rows: "3/retention_ms_0",
			edits: []edit{{"fsm/ended.go", "	m.rememberGone(t)\n", ""}},
		},
		{
			Name: "gone-key-free", What: "the key of a removed task is given again at once", Rows: "3/retention_ms_0",
			edits: []edit{{"fsm/gone.go", "		m.goneKeys.Add(name, id)\n", "		m.goneKeys.Add(name+\"?\", id)\n"}},
		},
		{
			Name: "retry-takes-gone-key", What: "a retry takes the key of a removed task that is remembered", Rows: "8/retry_key_remembered",
			edits: []edit{{"fsm/retry.go", "m.goneHolder(t.Type, t.Key, ofType); g != nil {", "m.goneHolder(t.Type, t.Key, ofType); g != nil && t == nil {"}},
		},
		{
			Name: "waiting-claim-forgotten", What: "what becomes claimable wakes nobody who waits", Rows: "4/claim_waits_for_a_delay",
			edits: []edit{{"cluster/batch/waiters.go", "	if count <= 0 {\n		return\n	}\n	for i := range s.ready {", "	if count >= 0 {\n		return\n	}\n	for i := range s.ready {"}},
		},
		{
			Name: "backoff-over-retry-in", What: "retry_in_ms does not override the backoff", Rows: "4/fail_retry_in_ms",
			edits: []edit{{"fsm/settle.go", "	case c.RetryIn:\n", "	case c.RetryIn && m.backoffOf(t) == nil:\n"}},
		},
		{
			Name: "cancel-forgotten", What: "a task whose cancel was asked for is pending again after its claim", Rows: "8/cancel_asked_ends",
			edits: []edit{{"fsm/settle.go", "	switch {\n	case t.CancelRequested:\n", "	switch {\n	case t.CancelRequested && outcome == record.OutcomeRetried:\n"}},
		},
		{
			Name: "repeat-claims-again", What: "a repeated complete does not tell of its next claim", Rows: "4/complete_with_claim",
			edits: []edit{{"fsm/complete.go", "	case result.Repeated:\n		return m.repeatThen(result)\n", "	case result.Repeated:\n		return result\n"}},
		},
		{
			Name: "atomic-batch-half-done", What: "an atomic batch that is refused keeps what it did before", Rows: "4/batch_atomic",
			edits: []edit{{"fsm/batch.go", "			return refusal, m.undoAll()\n", "			m.keepAll()\n			return refusal, nil\n"}},
		},
		{
			Name: "active-key-kept", What: "the key of a removed task with unique active stays taken", Rows: "3/unique_active_removed",
			edits: []edit{{"fsm/record/key.go", "!(t.Opts().UniqueActive && t.Status.Ended())", "true"}},
		},
		{
			Name: "request-of-anybody", What: "a claim request is repeated to another worker", Rows: "8/claim_request_id_other_request",
			edits: []edit{{"fsm/repeats.go", "	if r.WorkerID != workerID || r.Choice != choice {\n", "	if r.Choice != choice {\n"}},
		},
		{
			Name: "labels-ignored", What: "a list's labels select nothing", Rows: "4/list_labels",
			edits: []edit{
				{"fsm/record/filter.go", "(len(q.Labels) == 0 || hasLabels(t.Opts().Labels, q.Labels)) &&", "(len(q.Labels) == 0 || t != nil) &&"},
				{"fsm/record/filter.go", "return len(labels) == 0 && f.ParentID == 0 &&", "return f.ParentID == 0 &&"},
			},
		},
		{
			Name: "wait-at-once", What: "a read with wait_ms answers at once", Rows: "4/wait_for_the_end",
			edits: []edit{{"cluster/replica/watch.go", "time.NewTimer(wait)", "time.NewTimer(min(wait, 0))"}},
		},
		{
			Name: "reason-missing", What: "why does not tell of the type's limit", Rows: "8/why_limit_reached",
			edits: []edit{{"fsm/why.go", "	if ts.Slots() <= 0 {\n", "	if ts.Slots() < 0 {\n"}},
		},
		{
			Name: "expect-not-checked", What: "an action does not look at expect", Rows: "4/actions_expect",
			edits: []edit{{"api/actions.go", "	if req.Expects && req.Expect != found.matched {\n", "	if req.Expects && req.Expect < 0 {\n"}},
		},
		{
			Name: "slot-twice", What: "a slot of a schedule has two tasks", Rows: "4/schedule_overlap",
			edits: []edit{{"fsm/schedule.go", "	submitted := m.submitOne(&v.Task, new(record.Task), \"schedule \"+v.Name)\n", "	m.submitOne(&v.Task, new(record.Task), \"schedule \"+v.Name)\n	submitted := m.submitOne(&v.Task, new(record.Task), \"schedule \"+v.Name)\n"}},
		},
		{
			Name: "overlap-ignored", What: "a schedule with overlap skip does not look whether its last task has ended", Rows: "4/schedule_overlap",
			edits: []edit{{"fsm/schedule.go", "item.Skip || !v.OverlapAllow && m.lives(v.LastTaskID)", "item.Skip || !v.OverlapAllow && m.lives(0)"}},
		},
		{
			Name: "finalized-twice", What: "a second finalizer ends a parent that has ended", Rows: "4/finalize_once",
			edits: []edit{{"fsm/finalization.go", "	case t.Status.Ended():\n		answer.AlreadyFinalized = true\n", "	case t.Status.Ended() && t.WorkerID == c.ProcessorID:\n		answer.AlreadyFinalized = true\n"}},
		},
		{
			Name: "finalizers-both-hold", What: "a claim of a finalization takes it from its holder", Rows: "4/finalization_claim_messages",
			edits: []edit{{"fsm/finalization.go", "	case answer.Holder != \"\":\n		answer.Outcome = record.FinalizationAlreadyClaimed\n", ""}},
		},
		{
			Name: "finalizer-not-asked", What: "a finalize does not look who holds the claim", Rows: "4/finalize_refused",
			edits: []edit{{"fsm/finalization.go", "	case answer.Holder != \"\" && answer.Holder != c.ProcessorID:\n		result.Code = CodeTaskAlreadyClaimed\n", ""}},
		},
		{
			Name: "dead-finalizer-kept", What: "the claim of a dead finalizer never ends", Rows: "4/finalization_timeout",
			edits: []edit{{"fsm/record/finalization.go", "return f.EndU + overtime(f.TimeoutMS)", "return f.EndU + overtime(f.TimeoutMS) + 1<<40"}},
		},
		{
			Name: "claim-holds-up-auto", What: "an auto parent whose finalization is claimed does not end by itself", Rows: "4/finalization_of_an_auto_parent",
			edits: []edit{{"fsm/steps.go", "	case !t.Parent().Plan.ByClaim:\n", "	case !t.Parent().Plan.ByClaim && !record.IsFinalizing(t):\n"}},
		},
		{
			Name: "parent-stuck", What: "the end of the last step does not end its parent", Rows: "4/steps_auto_end",
			edits: []edit{{"fsm/steps.go", "	if ps.open() == 0 {\n		m.endWithSteps(s.ParentID)", "	if ps.open() < 0 {\n		m.endWithSteps(s.ParentID)"}},
		},
		{
			Name: "unblocked-early", What: "a step is unblocked while one that it depends on has not completed", Rows: "4/steps_depends_on",
			edits: []edit{{"fsm/steps.go", "		case ps.waiting[place] == 0:\n", "		case ps.waiting[place] <= 1:\n"}},
		},
		{
			Name: "continue-as-fail", What: "on_step_failure continue is treated as fail", Rows: "4/steps_on_step_failure_continue",
			edits: []edit{{"fsm/steps.go", "	case t.Status != record.StatusCompleted && !s.Plan.Continue:\n", "	case t.Status != record.StatusCompleted:\n"}},
		},
		{
			Name: "step-retention", What: "a step is removed by its own retention, before its parent", Rows: "8/steps_retention",
			edits: []edit{{"fsm/ended.go", "		return // it is kept as long as its parent\n", ""}},
		},
		{
			Name: "step-cancelled-alone", What: "a cancelled step does not cancel the others", Rows: "4/steps_a_cancelled_step",
			edits: []edit{{"fsm/steps.go", "	case t.Status != record.StatusCompleted && !s.Plan.Continue:\n", "	case t.Status == record.StatusFailed && !s.Plan.Continue:\n"}},
		},
		{
			Name: "expiry-ignored", What: "a key is taken after its expires_at", Rows: "4/keys_expired",
			edits: []edit{{"api/keyring/ring.go", "	case k.Expired(now):\n", "	case k.Expired(now) && k.Roles == 0:\n"}},
		},
		{
			Name: "addresses-ignored", What: "a key with addresses is taken from any", Rows: "4/keys_addresses",
			edits: []edit{{"api/keyring/ring.go", "	case !k.admits(from):\n", "	case !k.admits(from) && k.Roles == 0:\n"}},
		},
		{
			Name: "key-told", What: "a key is taken from the header in which nodes tell it, also from a client", Rows: "4/keys_told",
			edits: []edit{{"api/exchange/keycheck.go", "	if r.Forwarded {\n		if key = h.Peek(HeaderKey)", "	if r.Forwarded || h != nil {\n		if key = h.Peek(HeaderKey)"}},
		},
		{
			Name: "keys-meet", What: "idempotency keys of follow-ups are looked up among tasks of all types, whatever types the API key has", Rows: "4/keys_types_apart",
			edits: []edit{{"api/exchange/keytypes.go", "		tasks[i].KeyOfType = tasks[i].Key != \"\"\n", "		tasks[i].KeyOfType = false\n"}},
		},
		{
			Name: "removed-shown", What: "a key learns of removed tasks of types that it does not have", Rows: "4/keys_types_gone",
			edits: []edit{{"api/exchange/keytypes.go", "	return m.Removed(id)\n", "	return nil\n"}},
		},
		{
			Name: "steps-unasked", What: "a call on a parent needs the parent's type alone, not those of its steps", Rows: "4/keys_types_steps",
			edits: []edit{{"api/exchange/keytypes.go", "	if len(r.OnlyTypes) == 0 || t.Parent() == nil {\n", "	if len(r.OnlyTypes) == 0 || t.ID > 0 {\n"}},
		},
		{
			Name: "refused-free", What: "a settle that is refused does not count against its key's rate", Rows: "4/keys_refused_settles",
			edits: []edit{{"api/exchange/ratelimit.go", "	case !r.settles || !refused:\n", "	case !r.settles || !refused || r.Who != nil:\n"}},
		},
		{
			Name: "backup-untold", What: "the trail does not tell that a backup begins", Rows: "4/keys_backup",
			edits: []edit{{"api/backup.go", "	b.tell(event.BackupBegun, \"at index \"+b.index)\n", ""}},
		},
		{
			Name: "token-for-good", What: "a join token does not end by itself", Rows: "4/keys_join_tokens",
			edits: []edit{{"fsm/members.go", "m.header.JoinTokens[at]; t.ExpiresAt <=", "m.header.JoinTokens[at]; t.ExpiresAt+JoinTokenLifeMax <="}},
		},
		{
			Name: "token-audience", What: "a token for another audience is taken", Rows: "4/tokens_claims",
			edits: []edit{{"internal/oidc/token.go", "AnyAudience: jwt.Audience{i.cfg.Audience}, ", ""}},
		},
		{
			Name: "token-signature", What: "the signature of a token is not looked at", Rows: "4/tokens_signatures",
			edits: []edit{{"internal/oidc/token.go", "signed.Verify(key.key); err != nil {\n", "signed.Verify(key.key); err != nil && key == nil {\n"}},
		},
		{
			Name: "token-group", What: "a token of any group has the roles of the first one", Rows: "4/tokens_without_a_group",
			edits: []edit{{"api/keyring/tokens.go", "		case !slices.Contains(groups, t.cfg.Roles[i].Group):\n", "		case !slices.Contains(groups, t.cfg.Roles[i].Group) && len(groups) == 0:\n"}},
		},
		{
			Name: "token-types", What: "a token is for tasks of all types", Rows: "4/tokens_types",
			edits: []edit{{"api/keyring/tokens.go", "= g.Roles, g.Types, g.Addresses, g.Bucket\n", "= g.Roles, nil, g.Addresses, g.Bucket\n"}},
		},
		{
			Name: "token-rate", What: "each token has a rate of its own, not its subject", Rows: "4/tokens_rate",
			edits: []edit{{"api/keyring/tokens.go", "fmt.Appendf(k.Sum[:len(k.Sum):len(k.Sum)], ", "fmt.Appendf(sum[:len(sum):len(sum)], "}},
		},
		{
			Name: "token-name", What: "the trail has the name of a token's subject as if it were a key's", Rows: "4/tokens_trail",
			edits: []edit{{"api/keyring/tokens.go", "	return subjectPrefix + clean\n", "	return clean\n"}},
		},
		{
			Name: "token-passed", What: "a leader takes no token that another node passes on", Rows: "4/tokens_everywhere",
			edits: []edit{{"api/exchange/keycheck.go", "			return key, !keyring.ValidText(key) && !login.IsText(key)\n", "			return key, len(key) > keyring.BytesMax && !login.IsText(key)\n"}},
		},
	}
}
