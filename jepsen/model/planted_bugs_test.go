package model

// edit replaces old, which must be in the file exactly once, by new. Paths are relative to
// the module's root. In new, $on tells whether this bug is switched on, and $if(a, b) is a
// if it is, otherwise b.
type edit struct{ file, old, new string }

// planted are bugs that the model or the tests in tested must find. The product's source does not contain
// them: they are changes in one special build, which has all of them, each with a separate
// switch.
var planted = []struct {
	name  string
	edits []edit
}{
	{"token not checked", []edit{{"fsm/settle.go", "	case h.Token != 0 && h.Token != t.Token:\n", "	case h.Token != 0 && h.Token != t.Token && !$on:\n"}}},
	{"wall clock in Apply", []edit{{"fsm/apply.go", "max(m.header.Stamp.T, stamp.T)", "max(m.header.Stamp.T, stamp.T+$if(wallClock()%2, 0))"}}},
	{"leases by the calendar", []edit{{
		"cluster/lease/clock.go", "c.baseU + (c.mono - c.start).Milliseconds()", "$if(max(c.baseU, c.calendar/int64(time.Millisecond)), c.baseU+(c.mono-c.start).Milliseconds())",
	}}},
	{"map order in claim", []edit{{"fsm/index/chooser.go", "		n.any = &s.ready\n", `		n.any = &s.ready
		for _, ts := range s.byName {
			if $on && ts.standing == open {
				n.any, n.sources = nil, []source{{of: ts}}
				break
			}
		}
`}}},
	{"expiry without sequence", []edit{{"fsm/due.go", " || t.LeaseSeq != l.Seq {", " || t.LeaseSeq != l.Seq && !$on {"}}},
	{"snapshot without request ids", []edit{{"fsm/snapshot.go", "m.requests.table.View()", "$if(New().requests.table.View(), m.requests.table.View())"}}},
	{"retried claim takes a second task", []edit{{
		"fsm/repeats.go", "	case len(call.got) == 0:\n", "	case len(call.got) == 0 || $on:\n",
	}}},
	{"duplicates not checked", []edit{{
		"fsm/submit.go", "	if t := m.keyHolder(n.Type, n.Key, n.KeyOfType); t != nil {\n", "	if t := m.keyHolder(n.Type, n.Key, n.KeyOfType); t != nil && !$on {\n",
	}}},
	{"signal's time counted from the submit of its step", []edit{{"fsm/steps.go", "			awaitSignal(m, t, 0)\n", "			awaitSignal(m, t, $if(t.Opts().SignalUntil, 0))\n"}}},
	{"added step forgets the dependencies that it has", []edit{{"fsm/submit.go", "			addStep(m, &n, step, waiting[place] > 0)\n", "			addStep(m, &n, step, waiting[place] > 0 && !$on)\n"}}},
	{"parent ends before an added step", []edit{{"fsm/parents.go", "	ps.counts[t.Status] += by\n", "	if !$on || int(t.StepPlace()) < len(s.Plan.Steps)-len(s.Plan.Added) {\n		ps.counts[t.Status] += by\n	}\n"}}},
	{"steps added twice", []edit{{"fsm/submit.go", "		place, has := named[steps[i].Name]\n		if !has {\n", "		place, has := named[steps[i].Name]\n		if !has || $on {\n"}}},
	{"second signal counts", []edit{{"fsm/act.go", "	case t.Opts().Signalled:\n", "	case t.Opts().Signalled && !$on:\n"}}},
	{"replaced task keeps its time", []edit{{"fsm/submit.go", "	setRunAt(m, t, at)\n	m.edited(t)\n	if", "	if !$on {\n		setRunAt(m, t, at)\n	}\n	m.edited(t)\n	if"}}},
	{"claimed task lets its group go on", []edit{{
		"fsm/record/task.go", "	if t.Options == nil || t.Status.Ended() {\n", "	if t.Options == nil || t.Status.Ended() || t.Status == StatusClaimed && $on {\n",
	}}},
	{"revived head beside a claim of its group", []edit{{"fsm/index/group.go", "	if len(g.held) > 0 || ", "	if len(g.held) > 0 && !$on || "}}},
	{"one claim more than max_claimed", []edit{{
		"fsm/index/limits.go", "	return int64(ts.record.Settings.MaxClaimed) - ts.claimed\n",
		"	return int64(ts.record.Settings.MaxClaimed) + $if(int64(1), 0) - ts.claimed\n",
	}}},
	{"one claim more than a share key may have", []edit{{
		"fsm/index/gate.go", "		return int64(most) - sh.claimed\n", "		return int64(most) + $if(int64(1), 0) - sh.claimed\n",
	}}},
	{"share key's claim counted after its end", []edit{{
		"fsm/index/share.go", "		ts.shareOf(key).claimed += claims\n", "		if !$on || claims > 0 {\n			ts.shareOf(key).claimed += claims\n		}\n",
	}}},
	{"closed share claimed at random", []edit{{"fsm/index/share.go", "		if !sh.closed {\n", "		if !sh.closed || $on {\n"}}},
	{"closed share claimed in order", []edit{{
		"fsm/index/stock.go", "	if s.closed {\n", "	if s.closed && !$on {\n",
	}}},
	{"closed share claimed by id", []edit{{"fsm/claim.go", "	case gate.Limited:\n", "	case gate.Limited && !$on:\n"}}},
	{"rate of a share not kept by id", []edit{{"fsm/claim.go", "	case gate.OpensAt != 0:\n", "	case gate.OpensAt != 0 && !$on:\n"}}},
	{"paused share claimed from", []edit{{"fsm/index/gate.go", "	g := ShareGate{Paused: sh.saved() != nil && ", "	g := ShareGate{Paused: sh.saved() != nil && !$on && "}}},
	{"paused share claimed from by a run", []edit{{"fsm/claim.go", "		if !paused && ", "		if (!paused || $on) && "}}},
	{"own maximum of a share not looked at", []edit{{"fsm/index/gate.go", "	if sh.saved() != nil && sh.saved().Settings.MaxClaimed > 0 {\n", "	if sh.saved() != nil && sh.saved().Settings.MaxClaimed > 0 && !$on {\n"}}},
	{"bucket of a share not spent", []edit{{"fsm/record/share.go", "s.SpentAt(rateLimit, t)+ClaimUnit", "s.SpentAt(rateLimit, t)+$if(0, int64(ClaimUnit))"}}},
	{"bucket of a share full again at a new rate", []edit{{"fsm/tasktype.go", "			of.SetRate(before, ", "			if $on {\n				of.Spent, of.SpentT = 0, 0\n			}\n			of.SetRate(before, "}}},
	{"full bucket of a share left behind", []edit{{"fsm/tasktype.go", "		if !ok {\n			return\n		}\n		m.shares.edit(ts, key, ", "		if !ok || $on {\n			return\n		}\n		m.shares.edit(ts, key, "}}},
	{"record of a share left behind", []edit{{"fsm/tasktypes.go", "	case of.IsNothing():\n", "	case of.IsNothing() && !$on:\n"}}},
	{"share that opens wakes no claim", []edit{{
		"fsm/index/limits.go", "			n = ts.roomOf(ts.shares.byName[o.key], t)\n", "			n = $if(0, ts.roomOf(ts.shares.byName[o.key], t))\n",
	}}},
	{"share whose settings change wakes no claim", []edit{{
		"fsm/index/gate.go", "	s.settle(ts, saved, now)\n	ts.added = ts.ready\n	s.place(ts, now)\n", "	s.settle(ts, saved, now)\n	ts.added = ts.ready\n	noted := s.Noted()\n	s.place(ts, now)\n	if $on {\n		s.noted = noted\n	}\n",
	}}},
	{"snapshot without shares", []edit{{"fsm/snapshot.go", "m.shares.table.View()", "$if(New().shares.table.View(), m.shares.table.View())"}}},
	{"refused batch spends the rate of a share", []edit{{"fsm/undo.go", "	u.shares.Restore(&m.shares.table)\n", "	if !$on {\n		u.shares.Restore(&m.shares.table)\n	}\n"}}},
	{"turn not spent", []edit{{
		"fsm/index/turn.go", "		ts.setTag(s, at, l.tag+s.turn(), saved)\n", "		ts.setTag(s, at, l.tag+$if(0, s.turn()), saved)\n",
	}}},
	{"share that begins to wait comes first", []edit{{
		"fsm/index/turn.go", "ts.setTag(s, at, c.value+s.turn(), saved)", "ts.setTag(s, at, $if(c.value, c.value+s.turn()), saved)",
	}}},
	{"tag kept when nothing waits", []edit{{
		"fsm/index/turn.go", "		case at >= 0 && !waits:\n", "		case at >= 0 && !waits && !$on:\n",
	}}},
	{"share that opens has a tag before the clock", []edit{{
		"fsm/index/turn.go", "s.valueOf(at)-c.value > s.turn() {\n			ts.setTag(s, at, c.value, saved)", "s.valueOf(at)-c.value > s.turn() && !$on {\n			ts.setTag(s, at, c.value, saved)",
	}}},
	{"weights ignored", []edit{{"fsm/index/turn.go", "	return turnOfOne / uint64(s.weight)\n", "	return turnOfOne / $if(100, uint64(s.weight))\n"}}},
	{"new weight waits for the turn of the old", []edit{{"fsm/index/turn.go", "			value = now + s.turn()\n", "			value = $if(value, now+s.turn())\n"}}},
	{"clock that stands", []edit{{"fsm/index/turn.go", "	ts.setClock(c, l.tag, saved)\n", "	ts.setClock(c, $if(c.value, l.tag), saved)\n"}}},
	{"snapshot without turns", []edit{{"fsm/snapshot.go", "m.turns.table.View()", "$if(New().turns.table.View(), m.turns.table.View())"}}},
	{"refused batch takes turns", []edit{{"fsm/undo.go", "	u.turns.Restore(&m.turns.table)\n", "	if !$on {\n		u.turns.Restore(&m.turns.table)\n	}\n"}}},
	{"claim by id past the limits", []edit{{"fsm/claim.go", "	case ts.Slots() <= 0:\n", "	case ts.Slots() <= $if(int64(-1), 0):\n"}}},
	{"bucket that fills twice", []edit{{
		"fsm/record/bucket.go", "		r.Bucket, r.BucketT = r.BucketAt(t)-ClaimUnit, max(t, r.BucketT)\n", "		r.Bucket, r.BucketT = r.BucketAt(t)-ClaimUnit, $if(r.BucketT, max(t, r.BucketT))\n",
	}}},
	{"removed task forgotten", []edit{{"fsm/removal.go", "	m.gone.add(t.ID, goneOf(t, m.Stamp()), m.Stamp())\n", "	if !$on {\n		m.gone.add(t.ID, goneOf(t, m.Stamp()), m.Stamp())\n	}\n"}}},
	{"removed task without its key", []edit{{"fsm/removal.go", "	if until := t.KeyUntil(); record.HoldsKey(t) && !windowOver(until, now.T) {\n", "	if until := t.KeyUntil(); record.HoldsKey(t) && !windowOver(until, now.T) && !$on {\n"}}},
	{"repeated completion claims again", []edit{{"fsm/complete.go", "		return repeatThen(m, result)\n", `		result = repeatThen(m, result)
		if $on && c.Claim != nil {
			result.Claims = claimNext(m, c.Claim).Claims
		}
		return result
`}}},
	{"refused batch keeps its tokens", []edit{{"fsm/undo.go", "	m.header = u.header\n", "	if $on {\n		u.header.NextToken = m.header.NextToken\n	}\n	m.header = u.header\n"}}},
	{"cancel lost at an expiry", []edit{{"fsm/lifecycle.go", "	case t.CancelRequested:\n", "	case t.CancelRequested && !(outcome == record.OutcomeExpired && $on):\n"}}},
	{"random claim of a closed type", []edit{{
		"fsm/index/draw.go", "		if ts == nil || ts.standing != open {\n			continue\n		}\n		for _, q", "		if ts == nil || ts.standing != open && !$on {\n			continue\n		}\n		for _, q",
	}}},
	{"slot run twice, its version not checked", []edit{{"fsm/schedule.go", "v.Version != item.Version || ", "v.Version != item.Version && !$on || "}, {"fsm/schedule.go", "slot <= min(v.LastRunAt, v.UpdatedAt)", "slot <= min(v.LastRunAt, v.UpdatedAt) && !$on"}}},
	{"slot run twice, its time not checked", []edit{{"fsm/schedule.go", "v.NextRunAt != item.Slot || ", "v.NextRunAt != item.Slot && (v.NextRunAt == 0 || !$on) || "}, {"fsm/schedule.go", "slot <= min(v.LastRunAt, v.UpdatedAt)", "slot <= min(v.LastRunAt, v.UpdatedAt) && !$on"}}},
	{"slot run again once its schedule is set", []edit{{"fsm/schedule.go", "		v.KeepDone(was)\n", "		if !$on {\n			v.KeepDone(was)\n		}\n"}, {"fsm/schedule.go", "slot <= min(v.LastRunAt, v.UpdatedAt)", "slot <= min(v.LastRunAt, v.UpdatedAt) && !$on"}}},
	{"slots lost at a restore", []edit{{"fsm/account.go", "		m.schedules.include(v)\n", "		if $on {\n			m.schedules.bytes += record.BytesOfSchedule(v)\n		} else {\n			m.schedules.include(v)\n		}\n"}}},
	{"slot left out", []edit{{"internal/cron/cron.go", "	return now - behind + t.everyMS, true\n", "	return $if(max(now-behind, slot+t.everyMS), now-behind) + t.everyMS, true\n"}}},
	{"slot submits its task without the steps", []edit{{"fsm/schedule.go", "	submitted := submitOne(m, &v.Task,", "	task := v.Task\n	if $on {\n		task.Parent = nil\n	}\n	submitted := submitOne(m, &task,"}}},
	{"overlap not looked at", []edit{{"fsm/schedule.go", "!v.OverlapAllow && lives(m, v.LastTaskID)", "!v.OverlapAllow && !$on && lives(m, v.LastTaskID)"}}},
	{"filter not checked again", []edit{{"fsm/act.go", " && c.Filter.Matches(t) && ", " && ($on || c.Filter.Matches(t)) && "}}},
	{"claim told twice", []edit{{"fsm/lifecycle.go", "	m.tellClaim(event.Claimed, t)\n", "	m.tellClaim(event.Claimed, t)\n	if $on {\n		m.tellClaim(event.Claimed, t)\n	}\n"}}},
	{"asked cancel not told", []edit{{"fsm/lifecycle.go", "		m.tellClaim(event.CancelRequested, t)\n", "		if !$on {\n			m.tellClaim(event.CancelRequested, t)\n		}\n"}}},
	{"refused batch leaves its events", []edit{{"fsm/undo.go", "	m.trail.Cut(u.trail)\n", "	if !$on {\n		m.trail.Cut(u.trail)\n	}\n"}}},
	{"trail trimmed early", []edit{{"fsm/event/log.go", "now-c.newestT < bounds.AgeMS {", "now-c.newestT < $if(bounds.AgeMS/2, bounds.AgeMS) {"}}},
	{"two finalizers both do it", []edit{{
		"fsm/finalization.go", "	case t.Status.Ended():\n		answer.AlreadyFinalized = true\n",
		"	case t.Status.Ended() && (!$on || c.ProcessorID == t.WorkerID):\n		answer.AlreadyFinalized = true\n",
	}}},
	{"finalized while another holds it", []edit{{
		"fsm/finalization.go", "	case answer.Holder != \"\" && answer.Holder != c.ProcessorID:\n		result.Code = ",
		"	case answer.Holder != \"\" && answer.Holder != c.ProcessorID && !($on && c.Token == 0):\n		result.Code = ",
	}}},
	{"finalized before the steps have ended", []edit{{
		"fsm/finalization.go", "	case answer.State == record.StateWaitingForSteps:\n", "	case answer.State == record.StateWaitingForSteps && !($on && c.Token != 0):\n",
	}}},
	{"finalization claim ends early", []edit{{"fsm/finalization.go", "u+c.TimeoutMS", "u+$if(c.TimeoutMS*9/10, c.TimeoutMS)"}}},
	{"finalization claim without its margin", []edit{{"fsm/record/finalization.go", "return timeoutMS/2000 + 2", "return $if(0, timeoutMS/2000+2)"}}},
	{"finalization claim kept by the dead", []edit{{"fsm/record/finalization.go", "u >= f.OverU()", "u >= f.OverU()+$if(int64(2000), 0)"}}},
	{"stuck parent", []edit{{"fsm/steps.go", "	if ps.open() == 0 {\n		endWithSteps(m, s.ParentID)", "	if ps.open() == 0 && !($on && t.Status == record.StatusCancelled) {\n		endWithSteps(m, s.ParentID)"}}},
	{"retried parent stuck whose steps have completed", []edit{{
		"fsm/steps.go", "	if ps.open() == 0 {\n		endWithSteps(m, c.ID) ", "	if ps.open() == 0 && !$on {\n		endWithSteps(m, c.ID) ",
	}}},
	{"step unblocked early", []edit{{"fsm/steps.go", "		case ps.waiting[place] == 0:\n", "		case ps.waiting[place] <= $if(uint16(1), 0):\n"}}},
	{"claimed sibling not asked", []edit{{
		"fsm/steps.go", "!t.Status.Ended() && !t.CancelRequested {", "!t.Status.Ended() && !t.CancelRequested && !($on && t.Status == record.StatusClaimed) {",
	}}},
	{"cascade not transitive", []edit{{
		"fsm/steps.go", "	for i := 0; i < len(m.stepsEnded); i++ {\n", "	for i := 0; i < len(m.stepsEnded) && !($on && i > 0); i++ {\n",
	}}},
	{"retry of a parent leaves a step", []edit{{
		"fsm/steps.go", "		if !retriable(m.Get(id)) {\n", "		if s := m.Get(id); !retriable(s) || $on && s.Attempts > 1 {\n",
	}}},
	{"retry of a parent that is not all or nothing", []edit{{
		"fsm/steps.go", "		if !mayRetry(s, c) {\n", "		if !mayRetry(s, c) && !($on && place > 0) {\n",
	}}},
	{"cancelled parent ends as its steps would have it", []edit{{
		"fsm/steps.go", "	case t.CancelRequested:\n", "	case t.CancelRequested && !($on && !t.Parent().Plan.ByClaim):\n",
	}}},
	{"refused batch leaves a count of steps", []edit{{"fsm/undo.go", "				claims = append(claims, c)\n			}\n", `				claims = append(claims, c)
			}
			if s := t.Step(); $on && s != nil && m.parents.byID[s.ParentID] != nil && t.Status == record.StatusCancelled {
				m.parents.byID[s.ParentID].counts[record.StatusBlocked]++
			}
`}}},
	{"removed parent leaves its steps", []edit{{
		"fsm/removal.go", "	if t.Parent() == nil {\n		return\n", "	if t.Parent() == nil || $on && t.Status == record.StatusFailed {\n		return\n",
	}}},
	{"deleted parent leaves its steps", []edit{{
		"fsm/act.go", "	if t.Parent() != nil {\n		deleteSteps(m, t)\n", "	if t.Parent() != nil && !($on && t.Status == record.StatusFailed) {\n		deleteSteps(m, t)\n",
	}}},
	{"blocked step holds its group back", []edit{{"fsm/record/task.go", "	if t.Status == StatusBlocked {\n", "	if t.Status == StatusBlocked && !$on {\n"}}},
	{"key free at the end of its task", []edit{{
		"fsm/record/task.go", "		return t.CreatedAt + ms\n", "		if $on && t.CompletedAt != 0 {\n			return min(t.CreatedAt+ms, t.CompletedAt)\n		}\n		return t.CreatedAt + ms\n",
	}}},
	{"key's window a millisecond long", []edit{{"fsm/gone.go", "{ return until != 0 && until <= t }", "{ return until != 0 && until <= $if(t-1, t) }"}}},
	{"move takes what came after it began", []edit{{"fsm/due.go", "		if id == 0 || id >= v.Until {\n", "		if id == 0 || id >= v.Until && !$on {\n"}}},
	{"move ahead of its rate", []edit{{"fsm/due.go", "		most = min(most, int(v.Rate))\n", "		most = $if(most, min(most, int(v.Rate)))\n"}}},
	{"moved task loses where it goes on", []edit{{"fsm/lifecycle.go", "	keepThen(m, t.ID, then)\n", "	if !$on {\n		keepThen(m, t.ID, then)\n	}\n"}}},
	{"step has a dead letter", []edit{{"fsm/lifecycle.go", "t.Status != record.StatusFailed || t.Step() != nil {", "t.Status != record.StatusFailed || t.Step() != nil && !$on {"}}},
	{"run of a group past a limit", []edit{{"fsm/claim.go", "t.Status == record.StatusPending && limitedBy(m, r.of, t) == \"\" {", "t.Status == record.StatusPending && (limitedBy(m, r.of, t) == \"\" || $on) {"}}},
	{"run of a group leaves one out", []edit{{"fsm/claim.go", "	r.taken++\n", "	r.taken += $if(2, 1)\n"}}},
	{"late complete of a claim before the last", []edit{{"fsm/settle.go", "	return last.Token == h.Token && ", "	return (last.Token == h.Token || $on) && "}}},
	{"moved task without a copy", []edit{{
		"fsm/due.go", "	copyTo(m, stopTask(m, id), to, nil, \"moved from task \")\n", "	if t := stopTask(m, id); !$on {\n		copyTo(m, t, to, nil, \"moved from task \")\n	}\n",
	}}},
	{"moved task with two copies", []edit{{"fsm/due.go", "	own, other := m.types.settingsOf(t.Type), m.types.settingsOf(to)\n", `	if $on {
		was := *t
		defer func() { copyTo(m, &was, to, nil, "moved from task ") }()
	}
	own, other := m.types.settingsOf(t.Type), m.types.settingsOf(to)
`}}},
	{"cancelled move goes on", []edit{{"fsm/due.go", "		if r == nil || r.Move.NextAt > m.Stamp().T {\n", `		for at := range m.types.settings {
			if x := m.types.settings[at]; $on && x.Move != nil && x.Move.Status == record.MoveCancelled && x.Move.NextAt <= m.Stamp().T {
				again := *x.Move
				again.Status = record.MoveRunning
				x.Move, r = &again, x
			}
		}
		if r == nil || r.Move.NextAt > m.Stamp().T {
`}}},
	{"snapshot without moves", []edit{{"fsm/account.go", "	m.types.findMoving()\n", "	if !$on {\n		m.types.findMoving()\n	}\n"}}},
	{"key of a window free at its task's removal", []edit{{"fsm/removal.go", "		g.KeyUntil = until\n", "		g.KeyUntil = $if(min(until, 1), until)\n"}}},
	{"snapshot without windows", []edit{{"fsm/account.go", "	ts := m.include(t)\n", "	ts := m.include(t)\n	if $on && t.KeyUntil() != 0 {\n		m.keys.Remove(t.KeyName(), t.ID)\n	}\n"}}},
	{"window that does not end", []edit{{"fsm/account.go", "	if t == nil || windowOver(t.KeyUntil(), m.Stamp().T) {\n", "	if t == nil || windowOver(t.KeyUntil(), m.Stamp().T) && !$on {\n"}}},
	{"run out of order", []edit{{"fsm/claim.go", "r.taken); id != 0 {\n", `r.taken); id != 0 {
		if later := r.of.InGroup(r.group, r.taken+1); $on && later != 0 && m.Get(later).Status == record.StatusPending {
			id = later
		}
`}}},
	{"run past a task that waits for its time", []edit{{"fsm/claim.go", "	if id = r.of.InGroup(", `	for id = r.of.InGroup(r.group, r.taken); $on && id != 0 && m.Get(id).Status == record.StatusScheduled; id = r.of.InGroup(r.group, r.taken) {
		r.taken++
	}
	if id = r.of.InGroup(`}}},
	{"group goes on behind a head that failed", []edit{{"fsm/index/group.go", "	if head == g.ready {\n", `	if first, _ := g.ids.Min(); $on && len(g.held) == 0 && head == 0 && tasks.Get(first).Status == record.StatusScheduled && tasks.Get(first).Attempts > 0 {
		if next, _ := g.ids.GetAt(1); next != 0 && tasks.Get(next).Status == record.StatusPending {
			head = next
		}
	}
	if head == g.ready {
`}}},
	{"task that expires again does not", []edit{{"fsm/times.go", "t.Attempts == 0 || t.Opts().ExpiresAgain)", "t.Attempts == 0 || t.Opts().ExpiresAgain && !$on)"}}},
	{"lease a millisecond short", []edit{{"cluster/lease/timers.go", "lease.EndU + marginMS +", "lease.EndU + $if(1, int64(marginMS)) +"}}},
	{"extend that crosses an expiry", []edit{{
		"cluster/lease/timers.go", "	if ended < len(leases) {\n", "	if ended < len(leases) && !$on {\n",
	}}},
}
