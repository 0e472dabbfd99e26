package sim

import "slices"

// choiceOf is what must be equal in a repeat of a claim request.
func choiceOf(c *command) command {
	return command{
		verb: c.verb, id: c.id, types: c.types, byCreated: c.byCreated, random: c.random, ascending: c.ascending, limit: c.limit, more: c.more,
	}
}

func sameChoice(a, b *command) bool {
	return a.verb == b.verb && a.id == b.id && slices.Equal(a.types, b.types) && a.byCreated == b.byCreated &&
		a.random == b.random && a.ascending == b.ascending && a.limit == b.limit && a.more == b.more
}

// recall returns the answer to a claim request that is remembered.
func (m *model) recall(c *command) (a answer, known bool) {
	r := m.requests[c.request]
	if c.request == "" || r == nil {
		return a, false
	}
	if r.endedU >= 0 && m.u >= r.endedU+rememberedMS {
		delete(m.requests, c.request)
		return a, false
	}
	choice := choiceOf(c)
	if r.worker != c.worker || !sameChoice(&r.choice, &choice) {
		return answer{code: "invalid_request"}, true
	}
	return answer{repeated: true, claims: m.asNow(r.claims)}, true
}

// asNow returns claims of an earlier answer as they are now.
func (m *model) asNow(claims []claimOf) []claimedTask {
	var now []claimedTask
	for _, cl := range claims {
		t := m.find(cl.id)
		now = append(now, claimedTask{
			task: t, id: cl.id, token: cl.token,
			live: t != nil && t.status == claimed && t.token == cl.token,
		})
	}
	return now
}

// remember keeps what a claim request was answered, if it took anything.
func (m *model) remember(c *command, a answer) {
	if c.request == "" || len(a.claims) == 0 {
		return
	}
	r := &remembered{worker: c.worker, choice: choiceOf(c), endedU: -1, claims: claimsOf(a.claims)}
	for _, cl := range r.claims {
		m.byToken[cl.token] = r
	}
	m.requests[c.request] = r
}

func claimsOf(claims []claimedTask) []claimOf {
	var of []claimOf
	for _, cl := range claims {
		of = append(of, claimOf{cl.id, cl.token})
	}
	return of
}

func (m *model) claimNext(c *command) answer {
	if a, known := m.recall(c); known {
		return a
	}
	var a answer
	for len(a.claims) < c.limit {
		t := m.choose(c, m.t)
		if t == nil {
			break
		}
		t = m.begin(t, c)
		a.claims = append(a.claims, claimedTask{task: t, id: t.id, token: t.token, live: true})
	}
	m.remember(c, a)
	return a
}

// choose returns the task that a claim takes next by the calendar t, nil if
// there is none.
func (m *model) choose(c *command, t int64) *task {
	candidates := m.candidates(c, t)
	if len(candidates) == 0 {
		return nil
	}
	if c.random {
		return m.chooseRandom(candidates)
	}
	best := candidates[0] // the oldest
	for _, t := range candidates[1:] {
		switch {
		case c.byCreated:
			if !c.ascending {
				best = t
			}
		case c.ascending:
			if t.priority < best.priority {
				best = t
			}
		case t.priority > best.priority:
			best = t
		}
	}
	return best
}

// chooseRandom returns the task that the machine took, if it was allowed to,
// else another one: then the answers differ.
func (m *model) chooseRandom(candidates []*task) *task {
	if len(m.picks) == 0 {
		return candidates[0]
	}
	id := m.picks[0]
	m.picks = m.picks[1:]
	for _, t := range candidates {
		if t.id == id {
			return t
		}
	}
	return candidates[0]
}

// candidates returns the tasks that a claim may take by the calendar t, the
// oldest first.
func (m *model) candidates(c *command, at int64) []*task {
	for m.oldest < len(m.tasks) && (m.tasks[m.oldest] == nil || m.tasks[m.oldest].status == completed) {
		m.oldest++ // nothing brings these back
	}
	rest := m.tasks[m.oldest:]
	behind := map[groupName]bool{} // groups whose first task was passed, or that have a claim
	for _, t := range rest {
		if t != nil && t.options.group != "" && t.status == claimed {
			behind[groupName{t.kind, t.options.group}] = true
		}
	}
	closed := map[string]bool{}
	for name := range m.types {
		closed[name] = m.types[name].settings.paused || m.limited(name, at)
	}
	var found []*task
	for _, t := range rest {
		if t == nil || ended(t.status) || t.status == blocked {
			continue
		}
		if g := (groupName{t.kind, t.options.group}); g.group != "" {
			if behind[g] {
				continue
			}
			behind[g] = true
		}
		if t.status == pending && !closed[t.kind] && (c.types == nil || slices.Contains(c.types, t.kind)) && t.attemptsLeft() > c.more {
			found = append(found, t)
		}
	}
	return found
}

// groupName names a group: each type has its own.
type groupName struct{ kind, group string }

// attemptsLeft returns how many attempts are left: without a limit more than
// can be asked for.
func (t *task) attemptsLeft() int32 {
	if t.max == 0 {
		return 1 << 20
	}
	return t.max - t.attempts
}

// leads reports whether the task's group lets it be claimed.
func (m *model) leads(t *task) bool {
	for _, other := range m.tasks {
		if other == nil || other == t || ended(other.status) || other.status == blocked || t.options.group == "" ||
			other.kind != t.kind || other.options.group != t.options.group {
			continue
		}
		if other.id < t.id || other.status == claimed {
			return false
		}
	}
	return true
}

func (m *model) claimTask(c *command) answer {
	if a, known := m.recall(c); known {
		return a
	}
	t := m.find(c.id)
	switch {
	case t == nil:
		return answer{code: "task_not_found"}
	case ended(t.status):
		return answer{code: "task_" + t.status, task: t}
	case t.status == claimed && t.worker != c.worker:
		return answer{code: "task_already_claimed", task: t}
	case t.status == claimed:
		t = m.change(t)
		m.lengthen(t, c.leaseMS)
		return answer{repeated: true, task: t, claims: []claimedTask{{task: t, id: t.id, token: t.token, live: true}}}
	}
	if why := m.heldBackBy(t); why != "" {
		return answer{code: "task_not_claimable", why: why, task: t}
	}
	t = m.begin(t, c)
	a := answer{task: t, claims: []claimedTask{{task: t, id: t.id, token: t.token, live: true}}}
	m.remember(c, a)
	return a
}

// heldBackBy returns why a task cannot be claimed by its id, "" if it can.
func (m *model) heldBackBy(t *task) string {
	switch {
	case t.status != pending:
		return t.status
	case !m.leads(t):
		return "group_behind"
	case m.crowded(t.kind):
		return "limit_reached"
	case m.limited(t.kind, m.t):
		return "rate_limited"
	}
	return ""
}

// begin begins a claim and returns the task.
func (m *model) begin(t *task, c *command) *task {
	t = m.change(t)
	m.tokens++
	lease := c.leaseMS
	for _, otherwise := range []int64{t.leaseMS, m.inForce(t.kind).leaseMS, leaseByDefault} {
		if lease == 0 {
			lease = otherwise
		}
	}
	m.spend(t.kind)
	t.status, t.worker, t.token, t.claimedAt = claimed, c.worker, m.tokens, m.t
	t.seq, t.claimMS, t.endU = 1, lease, m.u+lease
	t.attempts++
	t.number = t.attempts
	t.log = append(append([]attempt(nil), t.log...), attempt{worker: c.worker, token: t.token, claimedAt: m.t})
	if len(t.log) > attemptsKept {
		t.log = t.log[len(t.log)-attemptsKept:]
	}
	m.begun = append(m.begun, begun{t.id, t.token, t.endU})
	e := ofClaim(t)
	e.kind = claimed
	m.add(e, t)
	return t
}

// lengthen lets the claim last so long from now (0: its own length), never
// shorter than it does.
func (m *model) lengthen(t *task, lease int64) {
	if lease == 0 {
		lease = t.claimMS
	}
	if m.u+lease > t.endU {
		t.endU, t.claimMS = m.u+lease, lease
	}
	t.seq++
}
