package model

import "slices"

// choiceOf is what must be equal in a repeat of a claim request.
func choiceOf(c *Command) Command {
	return Command{
		Verb: c.Verb, ID: c.ID, Types: c.Types, ByCreated: c.ByCreated, Random: c.Random, Ascending: c.Ascending, Limit: c.Limit, More: c.More,
	}
}

func sameChoice(a, b *Command) bool {
	return a.Verb == b.Verb && a.ID == b.ID && slices.Equal(a.Types, b.Types) && a.ByCreated == b.ByCreated &&
		a.Random == b.Random && a.Ascending == b.Ascending && a.Limit == b.Limit && a.More == b.More
}

// recall returns the answer to a claim request that is remembered.
func (m *Model) recall(c *Command) (a Answer, known bool) {
	r := m.Requests[c.Request]
	if c.Request == "" || r == nil {
		return a, false
	}
	if r.EndedU >= 0 && m.U >= r.EndedU+RememberedMS {
		delete(m.Requests, c.Request)
		return a, false
	}
	choice := choiceOf(c)
	if r.worker != c.Worker || !sameChoice(&r.choice, &choice) {
		return Answer{Code: "invalid_request"}, true
	}
	return Answer{Repeated: true, Claims: m.asNow(r.claims)}, true
}

// asNow returns claims of an earlier answer as they are now.
func (m *Model) asNow(claims []ClaimOf) []claimedTask {
	var now []claimedTask
	for _, cl := range claims {
		t := m.Find(cl.ID)
		now = append(now, claimedTask{
			Task: t, ID: cl.ID, Token: cl.Token,
			Live: t != nil && t.Status == Claimed && t.Token == cl.Token,
		})
	}
	return now
}

// remember keeps what a claim request was answered, if it took anything.
func (m *Model) remember(c *Command, a Answer) {
	if c.Request == "" || len(a.Claims) == 0 {
		return
	}
	r := &remembered{worker: c.Worker, choice: choiceOf(c), EndedU: -1, claims: claimsOf(a.Claims)}
	for _, cl := range r.claims {
		m.byToken[cl.Token] = r
	}
	m.Requests[c.Request] = r
}

func claimsOf(claims []claimedTask) []ClaimOf {
	var of []ClaimOf
	for _, cl := range claims {
		of = append(of, ClaimOf{cl.ID, cl.Token})
	}
	return of
}

func (m *Model) claimNext(c *Command) Answer {
	if a, known := m.recall(c); known {
		return a
	}
	var a Answer
	for len(a.Claims) < c.Limit {
		t := m.choose(c, m.T)
		if t == nil {
			break
		}
		t = m.begin(t, c)
		a.Claims = append(a.Claims, claimedTask{Task: t, ID: t.ID, Token: t.Token, Live: true})
	}
	m.remember(c, a)
	return a
}

// choose returns the task that a claim takes next by the calendar t, nil if
// there is none.
func (m *Model) choose(c *Command, t int64) *Task {
	candidates := m.Candidates(c, t)
	if len(candidates) == 0 {
		return nil
	}
	if c.Random {
		return m.chooseRandom(candidates)
	}
	best := candidates[0] // the oldest
	for _, t := range candidates[1:] {
		switch {
		case c.ByCreated:
			if !c.Ascending {
				best = t
			}
		case c.Ascending:
			if t.Priority < best.Priority {
				best = t
			}
		case t.Priority > best.Priority:
			best = t
		}
	}
	return best
}

// chooseRandom returns the task that the machine took, if it was allowed to,
// else another one: then the answers differ.
func (m *Model) chooseRandom(candidates []*Task) *Task {
	if len(m.picks) == 0 {
		return candidates[0]
	}
	id := m.picks[0]
	m.picks = m.picks[1:]
	for _, t := range candidates {
		if t.ID == id {
			return t
		}
	}
	return candidates[0]
}

// Candidates returns the tasks that a claim may take by the calendar t, the
// oldest first.
func (m *Model) Candidates(c *Command, at int64) []*Task {
	for m.oldest < len(m.Tasks) && (m.Tasks[m.oldest] == nil || m.Tasks[m.oldest].Status == Completed) {
		m.oldest++ // nothing brings these back
	}
	rest := m.Tasks[m.oldest:]
	behind := map[groupName]bool{} // groups whose first task was passed, or that have a claim
	for _, t := range rest {
		if t != nil && t.Options.Group != "" && t.Status == Claimed {
			behind[groupName{t.Kind, t.Options.Group}] = true
		}
	}
	closed := map[string]bool{}
	for name := range m.Types {
		closed[name] = m.Types[name].settings.Paused || m.limited(name, at)
	}
	var found []*Task
	for _, t := range rest {
		if t == nil || Ended(t.Status) || t.Status == Blocked {
			continue
		}
		if g := (groupName{t.Kind, t.Options.Group}); g.group != "" {
			if behind[g] {
				continue
			}
			behind[g] = true
		}
		if t.Status == Pending && !closed[t.Kind] && (c.Types == nil || slices.Contains(c.Types, t.Kind)) && t.attemptsLeft() > c.More {
			found = append(found, t)
		}
	}
	return found
}

// groupName names a group: each type has its own.
type groupName struct{ kind, group string }

// attemptsLeft returns how many attempts are left: without a limit more than
// can be asked for.
func (t *Task) attemptsLeft() int32 {
	if t.Max == 0 {
		return 1 << 20
	}
	return t.Max - t.Attempts
}

// leads reports whether the task's group lets it be claimed.
func (m *Model) leads(t *Task) bool {
	for _, other := range m.Tasks {
		if other == nil || other == t || Ended(other.Status) || other.Status == Blocked || t.Options.Group == "" ||
			other.Kind != t.Kind || other.Options.Group != t.Options.Group {
			continue
		}
		if other.ID < t.ID || other.Status == Claimed {
			return false
		}
	}
	return true
}

func (m *Model) claimTask(c *Command) Answer {
	if a, known := m.recall(c); known {
		return a
	}
	t := m.Find(c.ID)
	switch {
	case t == nil:
		return Answer{Code: "task_not_found"}
	case Ended(t.Status):
		return Answer{Code: "task_" + t.Status, Task: t}
	case t.Status == Claimed && t.Worker != c.Worker:
		return Answer{Code: "task_already_claimed", Task: t}
	case t.Status == Claimed:
		t = m.change(t)
		m.lengthen(t, c.LeaseMS)
		return Answer{Repeated: true, Task: t, Claims: []claimedTask{{Task: t, ID: t.ID, Token: t.Token, Live: true}}}
	}
	if why := m.heldBackBy(t); why != "" {
		return Answer{Code: "task_not_claimable", Why: why, Task: t}
	}
	t = m.begin(t, c)
	a := Answer{Task: t, Claims: []claimedTask{{Task: t, ID: t.ID, Token: t.Token, Live: true}}}
	m.remember(c, a)
	return a
}

// heldBackBy returns why a task cannot be claimed by its id, "" if it can.
func (m *Model) heldBackBy(t *Task) string {
	switch {
	case t.Status != Pending:
		return t.Status
	case !m.leads(t):
		return "group_behind"
	case m.crowded(t.Kind):
		return "limit_reached"
	case m.limited(t.Kind, m.T):
		return "rate_limited"
	}
	return ""
}

// begin begins a claim and returns the task.
func (m *Model) begin(t *Task, c *Command) *Task {
	t = m.change(t)
	m.Tokens++
	lease := c.LeaseMS
	for _, otherwise := range []int64{t.LeaseMS, m.inForce(t.Kind).LeaseMS, LeaseByDefault} {
		if lease == 0 {
			lease = otherwise
		}
	}
	m.spend(t.Kind)
	t.Status, t.Worker, t.Token, t.ClaimedAt = Claimed, c.Worker, m.Tokens, m.T
	t.Seq, t.ClaimMS, t.EndU = 1, lease, m.U+lease
	t.Attempts++
	t.number = t.Attempts
	t.Log = append(append([]Attempt(nil), t.Log...), Attempt{Worker: c.Worker, Token: t.Token, ClaimedAt: m.T})
	if len(t.Log) > attemptsKept {
		t.Log = t.Log[len(t.Log)-attemptsKept:]
	}
	m.Begun = append(m.Begun, Begun{t.ID, t.Token, t.EndU})
	e := ofClaim(t)
	e.Kind = Claimed
	m.add(e, t)
	return t
}

// lengthen lets the claim last so long from now (0: its own length), never
// shorter than it does.
func (m *Model) lengthen(t *Task, lease int64) {
	if lease == 0 {
		lease = t.ClaimMS
	}
	if m.U+lease > t.EndU {
		t.EndU, t.ClaimMS = m.U+lease, lease
	}
	t.Seq++
}

// Claimable reports whether the claim would get something at u and t, or a moment that
// the model has seen if that is later.
func (m *Model) Claimable(c *Command, u, t int64) bool {
	if r := m.Requests[c.Request]; c.Request != "" && r != nil && (r.EndedU < 0 || max(u, m.U) < r.EndedU+RememberedMS) {
		return true
	}
	return len(m.Candidates(c, max(t, m.T))) > 0
}
