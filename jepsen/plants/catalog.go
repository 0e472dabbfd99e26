package plants

// All returns the bugs. Those of the state machine's own are the simulator's.
func All() []Plant {
	return []Plant{
		{
			Name: "early-ack", What: "a complete is acknowledged before it is committed",
			Nodes: 3, Faults: "kill-leader,pause-leader,kill-majority",
			edits: []edit{{
				file: "cluster/propose.go",
				old:  "	return n.batcher.propose(ctx, cmd)\n",
				new: `	if c, ok := cmd.(fsm.Complete); ok && n.IsLeader() {
		var held *fsm.Task
		var stamp fsm.Stamp
		index := n.fsm.read(func(m *fsm.Machine) {
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
			go func() { _, _ = n.batcher.propose(context.WithoutCancel(ctx), c) }()
			return fsm.Proposed{Index: index + 1, Stamp: stamp, Result: fsm.Result{Task: held}}, nil
		}
	}
	return n.batcher.propose(ctx, cmd)
`,
			}},
		},
		{
			Name: "no-fsync", What: "the log is not synced before it is acknowledged",
			Nodes: 3, Faults: "power-all",
			edits: []edit{{
				file: "cluster/syncdata_linux.go",
				old:  "		if err := syscall.Fdatasync(int(f.Fd())); !errors.Is(err, syscall.EINTR) {\n",
				new:  "		if err := error(nil); !errors.Is(err, syscall.EINTR) {\n",
			}},
		},
		{
			Name: "stale-read", What: "a leader reads without asking whether it still leads",
			Nodes: 3, Faults: "pause-leader", Clients: 60, Rate: 1200,
			edits: []edit{{
				file: "cluster/read.go",
				old:  "if err := l.confirmer.confirm(ctx, l.confirm); err != nil {",
				new:  "if err := ctx.Err(); err != nil {",
			}},
		},
		{
			Name: "late-heartbeat", What: "a late answer to an old heartbeat confirms a read",
			Nodes: 3, Faults: "pause-leader", Clients: 60, Rate: 1200, Test: "^TestConfirmer_",
			edits: []edit{{
				file: "cluster/confirm.go",
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
					old:  "	if !l.retry(\"first tick\", func() error { return l.propose(fsm.Tick{}) }) {\n		return\n	}\n",
					new:  "	l.start(func() { l.retry(\"first tick\", func() error { return l.propose(fsm.Tick{}) }) })\n",
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
			Name: "lease-dropped", What: "a new leader forgets the leases that it inherits",
			Nodes: 3, Faults: "kill-leader",
			edits: []edit{{
				file: "cluster/leader.go",
				old:  "	l.timers.Start(f.machine)\n",
				new:  "",
			}},
		},
		{
			Name: "waiter-gone", What: "a waiting claim whose caller has gone takes a task all the same",
			Nodes: 3, Faults: "kill-one", Test: "^TestWaiters_callerGoesWhileProposed$",
			edits: []edit{{
				file: "cluster/waiters.go",
				old:  "		left = gone && s.batcher.withdraw(&w.pending)\n",
				new:  "		left = gone && w.pending.waiter == nil\n",
			}},
		},
		{
			Name: "promise-kept", What: "a waiting claim whose caller goes does not pass on what it was woken for",
			Nodes: 3, Faults: "kill-one", Test: "^TestWaiters_takenBack$",
			edits: []edit{{
				file: "cluster/waiters.go",
				old:  "			s.unpromiseLocked(w, 0)\n",
				new:  "			w.promisedCount = 0\n",
			}},
		},
		{
			Name: "handler-duplicates", What: "an idempotency key is looked up before the log, not in it",
			Nodes: 3, Faults: "kill-one",
			edits: []edit{
				{
					file: "fsm/submit.go",
					old:  "	if t := m.ByKey(n.Key); t != nil {\n		*copied",
					new:  "	if t := (*Task)(nil); t != nil {\n		*copied",
				},
				{
					file: "cluster/propose.go",
					old:  "	case fsm.Submit:\n",
					new: `	case fsm.Submit:
		var known fsm.Proposed
		known.Index = n.fsm.read(func(m *fsm.Machine) {
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
`,
				},
			},
		},
		{
			Name: "two-finalizers", What: "a parent that has been finalized is finalized again by another processor",
			Nodes: 3, Faults: "kill-one",
			edits: []edit{{
				file: "fsm/finalization_claim.go",
				old:  "	case t.Status.Ended():\n		answer.AlreadyFinalized = true\n",
				new: `	case t.Status == StatusCompleted && !c.Failed && t.WorkerID != c.ProcessorID:
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
				file: "fsm/finalization_claim.go",
				old:  "	case answer.Holder != \"\":\n",
				new:  "	case answer.Holder != \"\" && m.parents[t.ID].open() > 0:\n",
			}},
		},
		{
			Name: "stuck-parent", What: "a parent whose last step is cancelled with those that it depends on never ends",
			Nodes: 3, Faults: "kill-one",
			edits: []edit{{
				file: "fsm/steps_end.go",
				old:  "	if ps.open() == 0 {\n		m.endWithSteps(s.ParentID)\n",
				new:  "	if ps.open() == 0 && t.Status != StatusCancelled {\n		m.endWithSteps(s.ParentID)\n",
			}},
		},
		{
			Name: "step-early", What: "a step is freed when all but one of those that it depends on have completed",
			Nodes: 3, Faults: "kill-one",
			edits: []edit{{
				file: "fsm/steps_end.go",
				old:  "		case ps.waiting[place] == 0:\n",
				new:  "		case ps.waiting[place] <= 1:\n",
			}},
		},
		{
			Name: "dead-finalizer", What: "the finalization claim of a processor that died is never over",
			Nodes: 3, Faults: "kill-one",
			edits: []edit{{
				file: "fsm/finalization_time.go",
				old:  "	if f == nil || u >= f.overU() {\n",
				new:  "	if f == nil {\n",
			}, {
				file: "fsm/finalization_time.go",
				old:  "m.finalizing.due(m.header.Stamp.U)",
				new:  "m.finalizing.due(0)",
			}},
		},
	}
}
