package model

import "slices"

// settle is the contract's order of checks, sentence by sentence.
func (m *Model) settle(c *Command, outcome string, do func(*Task)) Answer {
	t := m.Find(c.ID)
	if t == nil { // the task exists
		return m.settleRemoved(c, outcome)
	}
	// A task remembers how its last claim ended.
	if last := lastEnded(t.Log); last != nil && outcome != "" && last.Outcome == outcome {
		byToken := c.Token != 0 && c.Token == last.Token
		byWorker := c.Token == 0 && t.byClaim && c.Worker == last.Worker
		if byToken || byWorker {
			return Answer{Repeated: true, Task: t}
		}
	}
	switch {
	case Ended(t.Status): // it has not ended
		return Answer{Code: "task_" + t.Status, Task: t}
	case t.Status != Claimed && c.Token != 0: // it is claimed
		return Answer{Code: "stale_claim", Task: t}
	case t.Status != Claimed:
		return Answer{Code: "task_not_claimed", Task: t}
	case t.Worker != c.Worker: // by this worker
		return Answer{Code: "wrong_worker", Task: t}
	case c.Token != 0 && t.Token != c.Token: // with this token
		return Answer{Code: "stale_claim", Task: t}
	}
	t = m.change(t)
	do(t)
	m.afterEnd(t)
	return Answer{Task: t}
}

// lastEnded returns the last claim that has ended, nil if none has.
func lastEnded(log []Attempt) *Attempt {
	for i := len(log) - 1; i >= 0; i-- {
		if log[i].Outcome != "" {
			return &log[i]
		}
	}
	return nil
}

// complete completes, then submits the follow-ups, then claims. It is refused
// as a whole if the claim's request was another one's, or a follow-up is refused.
func (m *Model) complete(c *Command) Answer {
	if t := m.Find(c.ID); t != nil && t.Status == Claimed && t.Worker == c.Worker && (c.Token == 0 || c.Token == t.Token) {
		if c.Next != nil {
			if a, known := m.recall(c.Next); known && a.Code != "" {
				return Answer{Code: a.Code}
			}
		}
		if refused := m.followUpsRefused(c.Tasks, t); refused != nil {
			return Answer{Code: "invalid_task", Submitted: refused}
		}
	}
	a := m.settle(c, Completed, func(t *Task) {
		t.Result, t.Binary = c.Result, c.Opaque && c.Result != ""
		m.endClaim(t, Completed, "", Completed)
	})
	switch {
	case a.Repeated:
		return m.again(a)
	case a.Code != "":
		return a
	}
	a.Submitted = m.submitAll(c.Tasks)
	if c.Next != nil {
		next := m.claimNext(c.Next)
		a.Claims, a.Known = next.Claims, next.Repeated
	}
	if len(a.Submitted) == 0 && len(a.Claims) == 0 {
		return a
	}
	did := &Then{Claims: claimsOf(a.Claims)}
	for _, s := range a.Submitted {
		did.Submitted = append(did.Submitted, FollowUp{s.Task.ID, s.Created})
	}
	m.change(m.Find(c.ID)).Then = did
	return a
}

// followUpsRefused returns the outcomes of follow-ups of which one is refused.
func (m *Model) followUpsRefused(tasks []NewTask, completed *Task) []submittedTask {
	all, any := make([]submittedTask, len(tasks)), false
	for i := range tasks {
		r := m.refused(&tasks[i], completed)
		all[i].Task = &Task{}
		if r.Refused {
			all[i], any = r, true
		}
	}
	if !any {
		return nil
	}
	return all
}

// again adds to a repeated completion what the first did beside.
func (m *Model) again(a Answer) Answer {
	if a.Task.Then == nil {
		return a
	}
	for _, f := range a.Task.Then.Submitted {
		t := m.Find(f.ID)
		if t == nil {
			t = &Task{ID: f.ID}
		}
		a.Submitted = append(a.Submitted, submittedTask{Task: t, Created: f.Created})
	}
	a.Claims = m.asNow(a.Task.Then.Claims)
	return a
}

func (m *Model) fail(c *Command) Answer {
	return m.settle(c, Failed, func(t *Task) {
		t.Reason = c.Reason
		switch {
		case c.Permanent || t.attemptsLeft() <= 0:
			m.endClaim(t, Failed, c.Reason, Failed)
		case c.RetryIn:
			m.giveBack(t, Failed, c.Reason, c.DelayMS)
		default:
			m.backOff(t, Failed, c.Reason)
		}
	})
}

func (m *Model) expire(items []LeaseItem) Answer {
	var a Answer
	for _, l := range items {
		t := m.Find(l.ID)
		if t == nil || t.Status != Claimed || t.Token != l.Token || t.Seq != l.Seq {
			continue
		}
		t = m.change(t)
		if t.attemptsLeft() <= 0 {
			m.endClaim(t, expired, "", Failed)
		} else {
			m.backOff(t, expired, "")
		}
		if t.Status == Failed {
			t.Reason = "lease expired"
		}
		m.afterEnd(t)
		a.Expired++
	}
	return a
}

// giveBack ends a claim; the task is to wait so long.
func (m *Model) giveBack(t *Task, outcome, reason string, delayMS int64) {
	if delayMS <= 0 || t.Asked {
		m.endClaim(t, outcome, reason, Pending)
		return
	}
	t.RunAt = exactly(m.T + delayMS)
	m.endClaim(t, outcome, reason, Scheduled)
}

// backOff ends a claim; the task is to wait as its backoff says.
func (m *Model) backOff(t *Task, outcome, reason string) {
	b := t.Options.Backoff
	if b == nil {
		b = m.inForce(t.Kind).Backoff
	}
	if b == nil || t.Asked {
		m.endClaim(t, outcome, reason, Pending)
		return
	}
	wait := min(b.Most, b.Initial)
	for range t.Attempts - 1 {
		// Factors are whole numbers here: no rounding.
		wait = min(b.Most, wait*(b.Factor/1_000_000))
	}
	t.RunAt = &moment{Least: m.T + wait - wait*b.Jitter/1_000_000, Most: m.T + wait}
	if b.Jitter == 0 {
		t.RunAt = exactly(m.T + wait)
	}
	m.endClaim(t, outcome, reason, Scheduled)
	m.Unsure = append(m.Unsure, t)
}

// endClaim ends the claim of a version that is being changed. A task whose
// cancel was asked ends, if it does not complete.
func (m *Model) endClaim(t *Task, outcome, reason, to string) {
	if t.Asked && to != Completed {
		to = Cancelled
	}
	claim := ofClaim(t)
	if r := m.byToken[t.Token]; r != nil {
		delete(m.byToken, t.Token)
		alive := false
		for _, cl := range r.claims {
			alive = alive || m.byToken[cl.Token] == r
		}
		if !alive {
			r.EndedU = m.U
		}
	}
	t.Log = slices.Clone(t.Log)
	last := &t.Log[len(t.Log)-1]
	last.EndedAt, last.Outcome, last.Reason = m.T, outcome, reason
	t.Seq, t.ClaimMS, t.EndU = 0, 0, 0
	if Ended(to) {
		t.byClaim = true
		m.finish(t, to)
	} else {
		t.Status, t.Worker, t.Token = to, "", 0
	}
	m.tellEnd(claim, t, outcome, reason)
}

func (m *Model) cancel(id uint64) Answer {
	t := m.Find(id)
	if t == nil {
		r := m.removedTask(id)
		switch {
		case r == nil:
			return Answer{Code: "task_not_found"}
		case r.was.Status == Cancelled:
			return Answer{Repeated: true, Gone: true, Task: r.seen()}
		}
		return Answer{Code: "task_" + r.was.Status, Gone: true, Task: r.seen()}
	}
	switch {
	case t.Status == Cancelled, (t.Status == Claimed || t.Status == Running) && t.Asked:
		return Answer{Repeated: true, Task: t}
	case Ended(t.Status):
		return Answer{Code: "task_" + t.Status, Task: t}
	case t.IsParent():
		return m.cancelParent(t)
	}
	t = m.change(t)
	if t.Status == Claimed {
		t.Asked = true
		e := ofClaim(t)
		e.Kind = "cancel_requested"
		m.add(e, t)
	} else {
		m.endWaiting(t, Cancelled)
		m.afterEnd(t)
	}
	return Answer{Task: t}
}

// retriedBefore tells whether a retry that named the token, if any, ended that
// claim, the last that ended: it has been claimed again, or was cancelled by it.
func retriedBefore(t *Task, token uint64) bool {
	last := lastEnded(t.Log)
	if token == 0 || last == nil || last.Token != token {
		return false
	}
	return t.Status == Claimed && last.Outcome == retried ||
		(t.Status == Claimed || t.Status == Cancelled) && last.Outcome == Cancelled
}

func (m *Model) retry(c *Command) Answer {
	t := m.Find(c.ID)
	if r := m.removedTask(c.ID); t == nil && r != nil && retriedBefore(r.was, c.Token) {
		return Answer{Repeated: true, Gone: true, Task: r.seen()}
	}
	switch {
	case t == nil:
		return Answer{Code: "task_not_found"}
	case t.Status == Completed:
		return Answer{Code: "task_completed", Task: t}
	case t.Status == Pending, t.Status == Blocked:
		return Answer{Repeated: true, Task: t}
	case t.Status == Scheduled:
		t = m.change(t)
		t.Status = Pending
		m.tell(retried, t, "")
		return Answer{Repeated: true, Task: t}
	case t.IsParent():
		return m.retryParent(t, c)
	case retriedBefore(t, c.Token):
		return Answer{Repeated: true, Task: t}
	}
	if a, refused := m.retryOfStep(t); refused {
		return a
	}
	switch {
	case c.Token != 0 && c.Token != t.Token:
		return Answer{Code: "stale_claim", Task: t}
	case t.Status == Claimed && t.Asked:
		t = m.change(t)
		m.endClaim(t, Cancelled, "", Cancelled)
		m.afterEnd(t)
		return Answer{Task: t}
	}
	limit := t.Max
	if limit != 0 {
		limit += c.Add
	}
	if limit != 0 && t.Attempts >= limit {
		return Answer{Code: "max_attempts_reached", Task: t}
	}
	if a, taken := m.keyTaken(t); taken {
		return a
	}
	t = m.change(t)
	if t.Of != 0 && t.Status != Claimed {
		m.reviveStep(t, c.Add)
		return Answer{Task: t}
	}
	t.Max = limit
	if t.Status == Claimed {
		m.endClaim(t, retried, "", Pending)
	} else {
		m.revive(t)
		m.tell(retried, t, "")
	}
	return Answer{Task: t}
}

// keyTaken tells whether the key of a task that is to be retried is another's: of one
// that is there, or of one that was removed and would be answered to who submits it
// again.
func (m *Model) keyTaken(t *Task) (a Answer, taken bool) {
	if other := m.holder(t.Kind, t.Key, t.Options.OfKind); other != nil {
		return Answer{Code: "key_taken", Task: other}, other.ID != t.ID
	}
	if r := m.removedByKey(t.Kind, t.Key, t.Options.OfKind); r != nil {
		return Answer{Code: "key_taken", Gone: true, Task: r.seen()}, true
	}
	return Answer{}, false
}

// revive makes an ended task pending.
func (m *Model) revive(t *Task) {
	t.Status, t.Worker, t.Token, t.CompletedAt, t.RemoveAt = Pending, "", 0, 0, 0
	t.Result, t.Binary = "", false
	t.Asked, t.byClaim = false, false
	if t.Attempts == 0 && t.Options.ExpiresAt <= m.T {
		t.Options.ExpiresAt = 0 // it would expire at once
	}
	if t.Key != "" {
		m.Keys[t.Taken()] = t.ID
	}
}
