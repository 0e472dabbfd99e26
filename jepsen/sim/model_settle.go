package sim

import "slices"

// settle is the contract's order of checks, sentence by sentence.
func (m *model) settle(c *command, outcome string, do func(*task)) answer {
	t := m.find(c.id)
	if t == nil { // the task exists
		return m.settleRemoved(c, outcome)
	}
	// A task remembers how its last claim ended.
	if last := lastEnded(t.log); last != nil && outcome != "" && last.outcome == outcome {
		byToken := c.token != 0 && c.token == last.token
		byWorker := c.token == 0 && t.byClaim && c.worker == last.worker
		if byToken || byWorker {
			return answer{repeated: true, task: t}
		}
	}
	switch {
	case ended(t.status): // it has not ended
		return answer{code: "task_" + t.status, task: t}
	case t.status != claimed && c.token != 0: // it is claimed
		return answer{code: "stale_claim", task: t}
	case t.status != claimed:
		return answer{code: "task_not_claimed", task: t}
	case t.worker != c.worker: // by this worker
		return answer{code: "wrong_worker", task: t}
	case c.token != 0 && t.token != c.token: // with this token
		return answer{code: "stale_claim", task: t}
	}
	t = m.change(t)
	do(t)
	m.afterEnd(t)
	return answer{task: t}
}

// lastEnded returns the last claim that has ended, nil if none has.
func lastEnded(log []attempt) *attempt {
	for i := len(log) - 1; i >= 0; i-- {
		if log[i].outcome != "" {
			return &log[i]
		}
	}
	return nil
}

// complete completes, then submits the follow-ups, then claims. It is refused
// as a whole if the claim's request was another one's.
func (m *model) complete(c *command) answer {
	if c.next != nil {
		if t := m.find(c.id); t != nil && t.status == claimed && t.worker == c.worker && (c.token == 0 || c.token == t.token) {
			if a, known := m.recall(c.next); known && a.code != "" {
				return answer{code: a.code}
			}
		}
	}
	a := m.settle(c, completed, func(t *task) {
		t.result, t.binary = c.result, c.opaque && c.result != ""
		m.endClaim(t, completed, "", completed)
	})
	switch {
	case a.repeated:
		return m.again(a)
	case a.code != "":
		return a
	}
	a.submitted = m.submitAll(c.tasks)
	if c.next != nil {
		next := m.claimNext(c.next)
		a.claims, a.known = next.claims, next.repeated
	}
	if len(a.submitted) == 0 && len(a.claims) == 0 {
		return a
	}
	did := &then{claims: claimsOf(a.claims)}
	for _, s := range a.submitted {
		did.submitted = append(did.submitted, followUp{s.task.id, s.created})
	}
	m.change(m.find(c.id)).then = did
	return a
}

// again adds to a repeated completion what the first did beside.
func (m *model) again(a answer) answer {
	if a.task.then == nil {
		return a
	}
	for _, f := range a.task.then.submitted {
		t := m.find(f.id)
		if t == nil {
			t = &task{id: f.id}
		}
		a.submitted = append(a.submitted, submittedTask{task: t, created: f.created})
	}
	a.claims = m.asNow(a.task.then.claims)
	return a
}

func (m *model) fail(c *command) answer {
	return m.settle(c, failed, func(t *task) {
		t.reason = c.reason
		switch {
		case c.permanent || t.attemptsLeft() <= 0:
			m.endClaim(t, failed, c.reason, failed)
		case c.retryIn:
			m.giveBack(t, failed, c.reason, c.delayMS)
		default:
			m.backOff(t, failed, c.reason)
		}
	})
}

func (m *model) expire(items []leaseItem) answer {
	var a answer
	for _, l := range items {
		t := m.find(l.id)
		if t == nil || t.status != claimed || t.token != l.token || t.seq != l.seq {
			continue
		}
		t = m.change(t)
		if t.attemptsLeft() <= 0 {
			m.endClaim(t, expired, "", failed)
		} else {
			m.backOff(t, expired, "")
		}
		if t.status == failed {
			t.reason = "lease expired"
		}
		m.afterEnd(t)
		a.expired++
	}
	return a
}

// giveBack ends a claim; the task is to wait so long.
func (m *model) giveBack(t *task, outcome, reason string, delayMS int64) {
	if delayMS <= 0 || t.asked {
		m.endClaim(t, outcome, reason, pending)
		return
	}
	t.runAt = exactly(m.t + delayMS)
	m.endClaim(t, outcome, reason, scheduled)
}

// backOff ends a claim; the task is to wait as its backoff says.
func (m *model) backOff(t *task, outcome, reason string) {
	b := t.options.backoff
	if b == nil {
		b = m.inForce(t.kind).backoff
	}
	if b == nil || t.asked {
		m.endClaim(t, outcome, reason, pending)
		return
	}
	wait := min(b.most, b.initial)
	for range t.attempts - 1 {
		// Factors are whole numbers here: no rounding.
		wait = min(b.most, wait*(b.factor/1_000_000))
	}
	t.runAt = &moment{least: m.t + wait - wait*b.jitter/1_000_000, most: m.t + wait}
	if b.jitter == 0 {
		t.runAt = exactly(m.t + wait)
	}
	m.endClaim(t, outcome, reason, scheduled)
	m.unsure = append(m.unsure, t)
}

// endClaim ends the claim of a version that is being changed. A task whose
// cancel was asked ends, if it does not complete.
func (m *model) endClaim(t *task, outcome, reason, to string) {
	if t.asked && to != completed {
		to = cancelled
	}
	claim := ofClaim(t)
	if r := m.byToken[t.token]; r != nil {
		delete(m.byToken, t.token)
		alive := false
		for _, cl := range r.claims {
			alive = alive || m.byToken[cl.token] == r
		}
		if !alive {
			r.endedU = m.u
		}
	}
	t.log = slices.Clone(t.log)
	last := &t.log[len(t.log)-1]
	last.endedAt, last.outcome, last.reason = m.t, outcome, reason
	t.seq, t.claimMS, t.endU = 0, 0, 0
	if ended(to) {
		t.byClaim = true
		m.finish(t, to)
	} else {
		t.status, t.worker, t.token = to, "", 0
	}
	m.tellEnd(claim, t, outcome, reason)
}

func (m *model) cancel(id uint64) answer {
	t := m.find(id)
	if t == nil {
		r := m.removedTask(id)
		switch {
		case r == nil:
			return answer{code: "task_not_found"}
		case r.was.status == cancelled:
			return answer{repeated: true, gone: true, task: r.seen()}
		}
		return answer{code: "task_" + r.was.status, gone: true, task: r.seen()}
	}
	switch {
	case t.status == cancelled, (t.status == claimed || t.status == running) && t.asked:
		return answer{repeated: true, task: t}
	case ended(t.status):
		return answer{code: "task_" + t.status, task: t}
	case t.isParent():
		return m.cancelParent(t)
	}
	t = m.change(t)
	if t.status == claimed {
		t.asked = true
		e := ofClaim(t)
		e.kind = "cancel_requested"
		m.add(e, t)
	} else {
		m.endWaiting(t, cancelled)
		m.afterEnd(t)
	}
	return answer{task: t}
}

// retriedBefore tells whether a retry that named the token, if any, ended that
// claim, the last that ended: it has been claimed again, or was cancelled by it.
func retriedBefore(t *task, token uint64) bool {
	last := lastEnded(t.log)
	if token == 0 || last == nil || last.token != token {
		return false
	}
	return t.status == claimed && last.outcome == retried ||
		(t.status == claimed || t.status == cancelled) && last.outcome == cancelled
}

func (m *model) retry(c *command) answer {
	t := m.find(c.id)
	if r := m.removedTask(c.id); t == nil && r != nil && retriedBefore(r.was, c.token) {
		return answer{repeated: true, gone: true, task: r.seen()}
	}
	switch {
	case t == nil:
		return answer{code: "task_not_found"}
	case t.status == completed:
		return answer{code: "task_completed", task: t}
	case t.status == pending, t.status == blocked:
		return answer{repeated: true, task: t}
	case t.status == scheduled:
		t = m.change(t)
		t.status = pending
		m.tell(retried, t, "")
		return answer{repeated: true, task: t}
	case t.isParent():
		return m.retryParent(t, c)
	case retriedBefore(t, c.token):
		return answer{repeated: true, task: t}
	}
	if a, refused := m.retryOfStep(t); refused {
		return a
	}
	switch {
	case c.token != 0 && c.token != t.token:
		return answer{code: "stale_claim", task: t}
	case t.status == claimed && t.asked:
		t = m.change(t)
		m.endClaim(t, cancelled, "", cancelled)
		m.afterEnd(t)
		return answer{task: t}
	}
	limit := t.max
	if limit != 0 {
		limit += c.add
	}
	if limit != 0 && t.attempts >= limit {
		return answer{code: "max_attempts_reached", task: t}
	}
	if a, taken := m.keyTaken(t); taken {
		return a
	}
	t = m.change(t)
	if t.of != 0 && t.status != claimed {
		m.reviveStep(t, c.add)
		return answer{task: t}
	}
	t.max = limit
	if t.status == claimed {
		m.endClaim(t, retried, "", pending)
	} else {
		m.revive(t)
		m.tell(retried, t, "")
	}
	return answer{task: t}
}

// keyTaken tells whether the key of a task that is to be retried is another's: of one
// that is there, or of one that was removed and would be answered to who submits it
// again.
func (m *model) keyTaken(t *task) (a answer, taken bool) {
	if other := m.holder(t.kind, t.key, t.options.ofKind); other != nil {
		return answer{code: "key_taken", task: other}, other.id != t.id
	}
	if r := m.removedByKey(t.kind, t.key, t.options.ofKind); r != nil {
		return answer{code: "key_taken", gone: true, task: r.seen()}, true
	}
	return answer{}, false
}

// revive makes an ended task pending.
func (m *model) revive(t *task) {
	t.status, t.worker, t.token, t.completedAt, t.removeAt = pending, "", 0, 0, 0
	t.result, t.binary = "", false
	t.asked, t.byClaim = false, false
	if t.attempts == 0 && t.options.expiresAt <= m.t {
		t.options.expiresAt = 0 // it would expire at once
	}
	if t.key != "" {
		m.keys[t.taken()] = t.id
	}
}
