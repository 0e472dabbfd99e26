package plants

// All returns the bugs. Those of the state machine's own are the simulator's.
func All() []Plant {
	return []Plant{
		{
			Name: "early-ack", What: "a complete is acknowledged before it is committed",
			Nodes: 3, Faults: "kill-leader,pause-leader,kill-majority",
			edits: []edit{{
				file: "cluster/propose.go",
				old:  "	return n.batcher.Propose(ctx, cmd)\n",
				new: `	if c, ok := cmd.(command.Complete); ok && n.IsLeader() {
		var held *fsm.Task
		var stamp fsm.Stamp
		index := n.fsm.Read(func(m *fsm.Machine) {
			stamp = m.Stamp()
			if t := m.Get(c.ID); t != nil && t.Status == fsm.StatusClaimed && t.WorkerID == c.WorkerID && t.Token == c.Token {
				copied := *t
				held = &copied
			}
		})
		if held != nil {
			c.Result = append([]byte(nil), c.Result...)
			c.ResultPayload = nil
			held.Status, held.Result = fsm.StatusCompleted, c.Result
			go func() { _, _ = n.batcher.Propose(context.WithoutCancel(ctx), c) }()
			return nodes.Proposed{Index: index + 1, Stamp: stamp, Result: fsm.Result{Task: held}}, nil
		}
	}
	return n.batcher.Propose(ctx, cmd)
`,
			}},
		},
		{
			Name: "no-fsync", What: "the log is not synced before it is acknowledged",
			Nodes: 3, Faults: "power-all",
			edits: []edit{{
				file: "cluster/storage/syncdata_linux.go",
				old:  "		if err := syscall.Fdatasync(int(f.Fd())); !errors.Is(err, syscall.EINTR) {\n",
				new:  "		if err := error(nil); !errors.Is(err, syscall.EINTR) {\n",
			}},
		},
		{
			Name: "split-vote", What: "the vote is two writes: its term is on disk with an earlier candidate first",
			Nodes: 3, Faults: "kill-majority", Test: "^TestVote$", Soak: "crashes at writes",
			edits: []edit{{
				file: "cluster/storage/stablestore.go",
				old:  "		return s.write(key, vote{term: val}.encode())\n",
				new:  "		v, _ := s.vote()\n		v.term = val\n		return s.write(key, v.encode())\n",
			}},
		},
		{
			Name: "beside-loop", What: "a heartbeat is handled beside Raft's main loop: it sets the term under a leader",
			Nodes: 3, Faults: "pause-leader,partition-leader", Test: "^TestHeartbeats_", Soak: "everything",
			edits: []edit{{
				file: "cluster/confirm/confirmer.go",
				old:  "func (c *Confirmer) SetHeartbeatHandler(func(raft.RPC)) {\n	c.Transport.SetHeartbeatHandler(c.heartbeats.handle)\n",
				new:  "func (c *Confirmer) SetHeartbeatHandler(handle func(raft.RPC)) {\n	c.Transport.SetHeartbeatHandler(handle)\n",
			}},
		},
		{
			Name: "stale-read", What: "a leader reads without asking whether it still leads",
			Nodes: 3, Faults: "pause-leader", Clients: 60, Rate: 1200,
			edits: []edit{{
				file: "cluster/read.go",
				old:  "if err := l.confirmer.Confirm(ctx, l.confirm); err != nil {",
				new:  "if err := ctx.Err(); err != nil {",
			}},
		},
		{
			Name: "late-heartbeat", What: "a late answer to an old heartbeat confirms a read",
			Nodes: 3, Faults: "pause-leader", Clients: 60, Rate: 1200, Test: "^TestConfirmer_", Package: "cluster/confirm",
			edits: []edit{{
				file: "cluster/confirm/confirmer.go",
				old:  "	if !resp.Success || resp.Term != term {\n",
				new:  "	number = c.sent.Load() + 1 // now, not when it was sent\n	if !resp.Success || resp.Term != term {\n",
			}},
		},
		{
			Name: "no-barrier", What: "a new leader serves before it has what the old one acknowledged",
			Nodes: 3, Faults: "kill-leader,pause-leader,partition-leader",
			edits: []edit{
				{
					file: "cluster/leader.go",
					old:  "	if !l.retry(\"barrier\", l.barrier) {\n		return\n	}\n",
					new:  "",
				},
				{
					file: "cluster/leader.go",
					old:  "	if !l.retry(\"first tick\", func() error { return l.propose(command.Tick{}) }) {\n		return\n	}\n",
					new:  "	l.start(func() { l.retry(\"first tick\", func() error { return l.propose(command.Tick{}) }) })\n",
				},
				{ // nor does it wait for what others say of the same state
					file: "cluster/leader.go",
					old:  "	if !l.agree(applied) {\n",
					new:  "	if applied.Index == math.MaxUint64 && !l.agree(applied) {\n",
				},
				{
					file: "cluster/leader.go",
					old:  "	\"fmt\"\n",
					new:  "	\"fmt\"\n	\"math\"\n",
				},
				{ // nobody calls it any more
					file: "cluster/leader.go",
					old:  "func (l *leadership) barrier() error {\n",
					new:  "var _ = (*leadership).barrier\n\nfunc (l *leadership) barrier() error {\n",
				},
			},
		},
		{
			Name: "no-token", What: "a settling call's token is not checked, only its worker",
			Nodes: 3, Faults: "kill-one",
			edits: []edit{{
				file: "fsm/settle.go",
				old:  "	case h.Token != 0 && h.Token != t.Token:\n",
				new:  "	case false:\n",
			}},
		},
		{
			Name: "uncompared-leader", What: "a new leader serves before it knows that a majority has applied the same",
			Nodes: 3, Faults: "kill-leader", Test: "^TestAgreement_electedNodeDiffers$", Soak: "everything",
			edits: []edit{{
				file: "cluster/leader.go",
				old:  "	if !l.agree(applied) {\n",
				new:  "	if applied.Index == 0 && !l.agree(applied) {\n",
			}},
		},
		{
			Name: "divided-serves", What: "a leader goes on although no majority has applied the same as it",
			Nodes: 3, Faults: "kill-leader", Test: "^TestAgreement_twoAliveDiffer$", Soak: "restores",
			edits: []edit{{
				file: "cluster/agreement.go",
				old:  "		if chain != \"\" && chain != c.at.String() {\n			return divided, \"\"\n",
				new:  "		if chain != \"\" && chain != c.at.String() {\n			return undecided, \"\"\n",
			}},
		},
		{
			Name: "odd-nonvoter", What: "a nonvoter that has applied something else gets a vote",
			Nodes: 3, Faults: "kill-leader", Test: "^TestAgreement_nonvoterDiffers$",
			edits: []edit{
				{
					file: "cluster/change.go",
					old:  "		case near && status.Chain == at.String():\n",
					new:  "		case near:\n",
				},
				{
					file: "cluster/membership.go",
					old:  "	if behind || status.Chain != looks.at.String() {\n",
					new:  "	if behind {\n",
				},
			},
		},
		{
			Name: "lease-dropped", What: "a new leader forgets the leases that it inherits",
			Nodes: 3, Faults: "kill-leader",
			edits: []edit{{
				file: "cluster/leader.go",
				old:  "func(m *fsm.Machine) { l.timers.Start(m) })",
				new:  "func(*fsm.Machine) {})",
			}},
		},
		{
			Name: "u-from-state", What: "a new leader's lease clock goes on from the newest entry, whatever the last leader told",
			Nodes: 3, Faults: "kill-leader", Test: "^TestNode_leaseOver",
			edits: []edit{{
				file: "cluster/lease/hint.go",
				old:  "			u = max(u, h.U)\n",
				new:  "			u = max(u, state.U)\n",
			}},
		},
		{
			Name: "hint-superseded", What: "a new leader's lease clock goes on from the hint of any leader",
			Nodes: 3, Faults: "partition-leader", Test: "^TestClocks_startFromHints$",
			edits: []edit{{
				file: "cluster/lease/hint.go",
				old:  "		if h.Term != 0 && (h.Term == newestTerm || h.Term == term) {\n",
				new:  "		if h.Term != 0 {\n",
			}},
		},
		{
			Name: "wall-alone", What: "the calendar follows the leader's wall clock, whatever the other voters' show",
			Nodes: 3, Faults: "kill-leader", Test: "^TestNode_wallClockOf",
			edits: []edit{{
				file: "cluster/lease/clock.go",
				old:  "return ahead.Abs() <= WallBound",
				new:  "return ahead.Abs() >= 0",
			}},
		},
		{
			Name: "waiter-gone", What: "a waiting claim whose caller has gone takes a task all the same",
			Nodes: 3, Faults: "kill-one", Test: "^TestWaiters_callerGoesWhileProposed$",
			edits: []edit{{
				file: "cluster/batch/waiters.go",
				old:  "		left = gone && s.cfg.Batcher.withdraw(&w.pending)\n",
				new:  "		left = gone && w.pending.waiter == nil\n",
			}},
		},
		{
			Name: "promise-kept", What: "a waiting claim whose caller goes does not pass on what it was woken for",
			Nodes: 3, Faults: "kill-one", Test: "^TestWaiters_takenBack$",
			edits: []edit{{
				file: "cluster/batch/waiters.go",
				old:  "			s.unpromiseLocked(w, 0)\n",
				new:  "			w.promisedCount = 0\n",
			}},
		},
		{
			Name: "pipeline-stuck", What: "answers that come after one that refuses are kept for Raft, which reads no more",
			Nodes: 3, Faults: "partition-one", Test: "^TestConfirmer_pipelineAfterARefusal$", Package: "cluster/confirm",
			edits: []edit{{
				file: "cluster/confirm/confirmer.go",
				old:  "				out = nil\n",
				new:  "",
			}},
		},
		{
			Name: "snapshot-stalls", What: "a follower waits without a bound for the rest of a snapshot",
			Nodes: 3, Faults: "pause-leader", Test: "^TestRaftInbound_snapshotThatStops$", Package: "cluster/peer",
			edits: []edit{{
				file: "cluster/peer/raft.go",
				old:  "		deadline = time.Now().Add(raftStallMax)\n",
				new:  "		deadline = time.Time{}\n",
			}},
		},
		{
			Name: "handler-duplicates", What: "an idempotency key is looked up before the log, not in it",
			Nodes: 3, Faults: "kill-one",
			edits: []edit{
				{
					file: "fsm/submit.go",
					old:  "	if t := m.holder(n.Type, n.Key, n.KeyOfType); t != nil {\n		*copied",
					new:  "	if t := (*record.Task)(nil); t != nil {\n		*copied",
				},
				{
					file: "cluster/propose.go",
					old:  "	switch c := cmd.(type) {\n	case command.ClaimNext:\n",
					new: `	switch c := cmd.(type) {
	case command.Submit:
		var known nodes.Proposed
		known.Index = n.fsm.Read(func(m *fsm.Machine) {
			known.Stamp = m.Stamp()
			for _, task := range c.Tasks {
				if t := m.ByKey(task.Key); t != nil {
					copied := *t
					known.Result.Submitted = append(known.Result.Submitted, fsm.Submitted{Task: &copied, SameRequest: true})
				}
			}
		})
		if n.IsLeader() && len(known.Result.Submitted) == len(c.Tasks) {
			return known, nil
		}
	case command.ClaimNext:
`,
				},
			},
		},
		{
			Name: "two-finalizers", What: "a parent that has been finalized is finalized again by another processor",
			Nodes: 3, Faults: "kill-one",
			edits: []edit{{
				file: "fsm/finalization.go",
				old:  "	case t.Status.Ended():\n		answer.AlreadyFinalized = true\n",
				new: `	case t.Status == record.StatusCompleted && !c.Failed && t.WorkerID != c.ProcessorID:
		t = m.edit(c.ID)
		t.WorkerID, t.Token, t.Result = c.ProcessorID, 0, c.Result
		m.edited(t)
		m.tellParentEnd(t)
	case t.Status.Ended():
		answer.AlreadyFinalized = true
`,
			}},
		},
		{
			Name: "two-holders", What: "the finalization of a parent is granted although another processor has it",
			Nodes: 3, Faults: "kill-one",
			edits: []edit{{
				file: "fsm/finalization.go",
				old:  "	case answer.Holder != \"\":\n",
				new:  "	case answer.Holder != \"\" && m.parents[t.ID].open() > 0:\n",
			}},
		},
		{
			Name: "stuck-parent", What: "a parent whose last step is cancelled with those that it depends on never ends",
			Nodes: 3, Faults: "kill-one", Test: "^TestParents_comeToTheirEnd$", Package: "fsm",
			edits: []edit{{
				file: "fsm/steps.go",
				old:  "	if ps.open() == 0 {\n		m.endWithSteps(s.ParentID)\n",
				new:  "	if ps.open() == 0 && t.Status != record.StatusCancelled {\n		m.endWithSteps(s.ParentID)\n",
			}},
		},
		{
			Name: "step-early", What: "a step is freed when all but one of those that it depends on have completed",
			Nodes: 3, Faults: "kill-one",
			edits: []edit{{
				file: "fsm/steps.go",
				old:  "		case ps.waiting[place] == 0:\n",
				new:  "		case ps.waiting[place] <= 1:\n",
			}},
		},
		{
			Name: "dead-finalizer", What: "the finalization claim of a processor that died is never over",
			Nodes: 3, Faults: "kill-one",
			edits: []edit{{
				file: "fsm/record/finalization.go",
				old:  "	if f == nil || u >= f.OverU() {\n",
				new:  "	if f == nil {\n",
			}, {
				file: "fsm/finalization.go",
				old:  "m.finalizing.Due(m.Stamp().U)",
				new:  "m.finalizing.Due(0)",
			}},
		},
		{
			Name: "follows-refused", What: "a complete's follow-ups are submitted though the complete is refused",
			// Such a complete seldom gets into the log: a leader judges it before.
			Nodes: 3, Faults: "kill-one", Test: "^TestComplete_RefusedDoesNothingBeside$", Package: "fsm",
			edits: []edit{{
				file: "fsm/complete.go",
				old:  "	case !ok:\n		return result\n",
				new:  "	case !ok:\n		m.submit(command.Submit{Tasks: c.Submit})\n		return result\n",
			}},
		},
		{
			Name: "batch-in-part", What: "an atomic batch that is refused keeps what it did before",
			Nodes: 3, Faults: "kill-one",
			edits: []edit{{
				file: "fsm/batch.go",
				old:  "			return refusal, m.undoAll()\n",
				new:  "			m.keepAll()\n			return refusal, nil\n",
			}},
		},
		{
			Name: "pause-ignored", What: "a claim takes tasks of a paused type",
			Nodes: 3, Faults: "kill-one",
			edits: []edit{{
				file: "fsm/claimable/limits.go",
				old:  "ts.record.Settings.Paused || ts.Slots() <= 0:",
				new:  "ts.Slots() <= 0:",
			}},
		},
		{
			Name: "delay-halved", What: "a task that was submitted with a delay waits for half of it",
			Nodes: 3, Faults: "kill-one",
			edits: []edit{{
				file: "fsm/submit.go",
				old:  "		return m.fromNow(n.DelayMS)\n",
				new:  "		return m.fromNow(n.DelayMS / 2)\n",
			}},
		},
		{
			Name: "stopped-is-hung", What: "time in which the process stood still counts against a write to the disk",
			Nodes: 3, Faults: "pause-leader", Test: "^TestFailStop_ForgivesTimeInWhichTheProcessStoodStill$", Package: "cluster/storage",
			edits: []edit{{
				file: "cluster/storage/failstop.go",
				old:  "		if call.looks >= hangingLooks {\n",
				new:  "		if now.Sub(call.startedAt) >= slowCallMaxDefault {\n",
			}},
		},
		{
			Name: "transcript-unchecked", What: "nobody looks whether a node signed the handshake's transcript",
			Nodes: 3, Faults: "kill-one", Test: "^TestHandshake_identityIsProven$", Package: "cluster/peer",
			edits: []edit{{
				file: "cluster/peer/handshake.go",
				old:  "	if !ed25519.Verify(public, said(role, transcript), frame[frameHeaderSize:][macSize:]) {\n",
				new:  "	if len(public) == 0 {\n",
			}},
		},
		{
			Name: "calls-of-strangers", What: "a node that was removed goes on calling over the connections that it has",
			Nodes: 3, Faults: "kill-one", Test: "^TestNode_strangersGetNothing$",
			edits: []edit{{
				file: "cluster/peer/http.go",
				old:  "	case ok && !isOpenCall(name) && !p.isMember(from):\n",
				new:  "	case ok && !isOpenCall(name) && p.cfg.Member == nil && !p.isMember(from):\n",
			}},
		},
		{
			Name: "removed-uncommitted", What: "a node is told that it was removed before that is committed",
			Nodes: 3, Faults: "kill-one", Test: "^TestNode_answerStandingWaitsForTheRemoval$",
			edits: []edit{{
				file: "cluster/removed.go",
				old:  "	for end := n.lastIndex(); n.raft.CommitIndex() < end; {\n",
				new:  "	for end := n.raft.CommitIndex(); n.raft.CommitIndex() < end; {\n",
			}},
		},
		{
			Name: "refused-is-unknown", What: "a configuration that Raft refuses is an unknown outcome",
			Nodes: 3, Faults: "kill-one", Test: "^TestNode_refusesWhatRaftRefuses$",
			edits: []edit{{
				file: "cluster/membership.go",
				old:  "	case change.Index() != 0:\n",
				new:  "	case err != nil:\n",
			}},
		},
		{
			Name: "cached-log", What: "a start relies on what the system has in memory of the log",
			Nodes: 3, Faults: "kill-one", Test: "^TestOpenStores_relyOnTheDiskAlone$", Package: "cluster/storage",
			edits: []edit{{
				file: "cluster/storage/storage.go",
				old:  "	if err := cfg.ReadFromDisk(d.path); err != nil {\n",
				new:  "	if err := error(nil); err != nil {\n",
			}},
		},
		{
			Name: "own-disk", What: "a leader does not wait for its own disk",
			Nodes: 3, Faults: "power-leader", Test: "^TestLeader_ownDisk$", Soak: "crashes at writes",
			edits: []edit{{
				file: "cluster/rafthandle.go",
				old:  "		wrapped.Stored, stored = logs.Stored, logs.AwaitStored\n",
				new:  "		_, _ = logs.Stored, logs.AwaitStored\n",
			}},
		},
		{
			Name: "half-restored", What: "a snapshot is taken in the midst of a restore",
			Nodes: 3, Faults: "kill-one", Test: "^TestRestoreBackup_", Soak: "restores",
			edits: []edit{{
				file: "cluster/replica/replica.go",
				old:  "	if _, under := r.machine.Restoring(); under {\n",
				new:  "	if _, under := r.machine.Restoring(); under && r.unstored != nil {\n",
			}},
		},
		{
			Name: "other-history", What: "a node takes over entries of another history at or below its state's index",
			Nodes: 3, Faults: "kill-one", Test: "^TestLogStore_otherHistory$", Soak: "restores",
			edits: []edit{{
				file: "cluster/rafthandle.go",
				old:  "		logs.AppliedTo(n.fsm.AppliedIndex)\n",
				new:  "		_ = logs.AppliedTo\n",
			}},
		},
		{
			Name: "seam-unseen", What: "what follows a snapshot is refused when it comes again, so that the snapshot is sent again",
			Nodes: 3, Faults: "pause-one", Test: "^TestSeam_",
			edits: []edit{{
				file: "cluster/confirm/heartbeats.go",
				old:  "		rpc.Command = seam.follows(args)\n",
				new:  "		_ = seam.follows(args)\n",
			}},
		},
		{
			Name: "log-emptied", What: "a follower deletes acknowledged entries above a snapshot that it is sent",
			Nodes: 3, Faults: "pause-one", Test: "^TestStores_KeepWhatLiesAboveASnapshot$", Package: "cluster/storage",
			edits: []edit{{
				file: "cluster/storage/logstore.go",
				old:  "	return min(hi, (*snapshot)()), nil\n",
				new:  "	return hi, nil\n",
			}},
		},
		{
			Name: "old-copy-votes", What: "a node does not ask whether its data folder is an old copy",
			Nodes: 3, Faults: "kill-one", Test: "^TestOpen_oldCopyIsFoundOut$|^TestOpen_votesOnceAMajorityHasAnswered$", Soak: "everything",
			edits: []edit{{
				file: "cluster/confirm/votegate.go",
				old:  "func NewVoteGate() *VoteGate { return &VoteGate{opened: make(chan struct{})} }\n",
				new:  "func NewVoteGate() *VoteGate {\n	g := &VoteGate{opened: make(chan struct{})}\n	g.Open()\n	return g\n}\n",
			}},
		},
		{
			Name: "moved-majority-lost", What: "nodes are dialed where the configuration has them only",
			Nodes: 3, Faults: "kill-one", Test: "^TestOpen_allHaveMoved$", Soak: "everything",
			edits: []edit{{
				file: "cluster/peer/raft.go",
				old:  "	if moved := l.port.whereabouts.Of(want); moved != \"\" && moved != string(address) {\n",
				new:  "	if moved := l.port.whereabouts.Of(want); moved == \"-\" {\n",
			}},
		},
		{
			Name: "batcher-gone", What: "a leadership that begins while the node stops waits for ever for an entry that nobody writes",
			Nodes: 3, Faults: "rolling-restart", Test: "^TestBatcher_stopped$", Package: "cluster/batch", Soak: "everything",
			edits: []edit{{
				file: "cluster/batch/batcher.go",
				old:  "	b.ended = true\n",
				new:  "	b.ended = false\n",
			}},
		},
		{
			Name: "identity-unchecked", What: "a node is taken for the member that it says it is, whatever key it shows",
			Nodes: 3, Faults: "kill-one", Test: "^TestHandshake_identityIsProven$", Package: "cluster/peer",
			edits: []edit{{
				file: "cluster/peer/handshake.go",
				old:  "	if nodekey.UUID(public) != from.UUID {\n",
				new:  "	if nodekey.UUID(public) != from.UUID && from.UUID == \"\" {\n",
			}},
		},
		{
			Name: "certificate-of-anybody", What: "a certificate may be for the names that a node says of itself, not those recorded of it",
			Nodes: 3, Faults: "kill-one", Test: "^TestNode_strangersWithACertificate$",
			edits: []edit{{
				file: "cluster/peer/port.go",
				old:  "	if p.cfg.Recorded != nil {\n		nodeID, peerAddr",
				new:  "	if p.cfg.Recorded != nil && secured == nil {\n		nodeID, peerAddr",
			}},
		},
		{
			Name: "change-of-nobody", What: "a leader changes the membership for another node that no operator asked",
			Nodes: 3, Faults: "kill-one", Test: "^TestNode_changeWithoutOperator$",
			edits: []edit{{
				file: "cluster/change.go",
				old:  "	by, ok := n.operator(q.Key)\n	if !ok {\n",
				new:  "	by, ok := n.operator(q.Key)\n	if !ok && q.NodeID == \"\" {\n",
			}},
		},
		{
			Name: "settles-unjudged", What: "a settle that is refused goes into the log first",
			Nodes: 3, Faults: "kill-one", Test: "^TestNode_refusedSettles$",
			edits: []edit{{
				file: "cluster/propose.go",
				old:  "		if p, done, err := n.judge(ctx, cmd); done {\n",
				new:  "		if p, done, err := n.judge(ctx, cmd); done && err != nil {\n",
			}},
		},
		{
			Name: "keyless-passed-on", What: "a leader with keys takes what another node passes on without one",
			Nodes: 3, Faults: "kill-one", Test: "^TestKeys_differ$|^TestRoles_Leader$", Package: "api",
			edits: []edit{{
				file: "api/exchange/keycheck.go",
				old:  "	case len(text) == 0 && r.Forwarded:\n		return failures",
				new:  "	case len(text) == 0 && r.Forwarded:\n		return nil\n	case len(text) == 1:\n		return failures",
			}},
		},
		{
			Name: "answers-uncounted", What: "what was rendered and not written yet is not counted",
			Nodes: 3, Faults: "kill-one", Test: "^TestServer_Answers$", Package: "api",
			edits: []edit{{
				file: "api/exchange/answers.go",
				old:  "	return max(int64(n)-r.room, 0)\n",
				new:  "	return max(int64(n)-r.room, 0) * 0\n",
			}},
		},
		{
			Name: "idle-keeps-bodies", What: "a connection that waits for its next request keeps the largest body and answer before",
			Nodes: 3, Faults: "kill-one", Test: "^TestServer_idleKeepsNoBodies$", Package: "api",
			edits: []edit{{
				file: "api/server.go",
				old:  "	fasthttp.SetBodySizePoolLimit(exchange.KeptBytes, exchange.KeptBytes)\n",
				new:  "",
			}},
		},
		{
			Name: "leaders-answers-uncounted", What: "a follower does not ask for room before it reads a large answer of the leader",
			Nodes: 3, Faults: "kill-one", Test: "^TestServer_forwardedAnswers$", Package: "api",
			edits: []edit{{
				file: "api/exchange/forward.go",
				old:  "&r.HTTP.Response, room); err != nil {\n",
				new:  "&r.HTTP.Response, func(int) error { _ = room; return nil }); err != nil {\n",
			}},
		},
		{
			Name: "strangers-send", What: "the body of a caller without a key may be as large as any",
			Nodes: 3, Faults: "kill-one", Test: "^TestServer_StrangersBody$", Package: "api",
			edits: []edit{{
				file: "api/exchange/beforebody.go",
				old:  "	case bad != nil && (chunked || length > port.StrangerBodyBytes):\n",
				new:  "	case bad != nil && (chunked || length > s.Cfg.Limits.BodyBytes):\n",
			}},
		},
		{
			Name: "one-key-takes-all", What: "one key may have all connections",
			Nodes: 3, Faults: "kill-one", Test: "^TestKeyShares_Connections$", Package: "api",
			edits: []edit{{
				file: "api/lasting/shares.go",
				old:  "	if who != nobody && of.count[what] >= s.Most[what] {\n",
				new:  "	if who != nobody && what != Connection && of.count[what] >= s.Most[what] {\n",
			}},
		},
		{
			Name: "waits-go-on", What: "what waits goes on when its key was taken out or has expired",
			Nodes: 3, Faults: "kill-one", Test: "^TestKeyShares_TakenOutBefore$", Package: "api",
			edits: []edit{{
				file: "api/lasting/held.go",
				old:  "	case ended != nil:\n",
				new:  "	case ended != nil && h.end == nil:\n",
			}},
		},
		{
			Name: "done-is-forbidden", What: "a batch that was done is forbidden for what its follow-ups found",
			Nodes: 3, Faults: "kill-one", Test: "^TestTypes_BatchDone$", Package: "api",
			edits: []edit{{
				file: "api/batch.go",
				old:  "	b := append(batchBody(r, &req, &p.Result), `{\"success\":true,\"results\":[`...)\n",
				new:  "	for _, res := range p.Result.Results {\n		for _, f := range res.Submitted {\n			if !r.MaySee(f.Task.Type) {\n				r.Refuse(r.RefuseFilter(\"type\", f.Task.Type))\n				return\n			}\n		}\n	}\n	b := append(batchBody(r, &req, &p.Result), `{\"success\":true,\"results\":[`...)\n",
			}, {
				file: "api/batch.go",
				old:  "				r.NarrowKeys(c.Submit)\n",
				new:  "				c.Submit = c.Submit[:len(c.Submit):len(c.Submit)]\n",
			}},
		},
	}
}
