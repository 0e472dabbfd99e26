package sim

import "slices"

// The statuses, outcomes and refusals of the contract, as this package knows
// them.
const (
	pending   = "pending"
	claimed   = "claimed"
	completed = "completed"
	failed    = "failed"
	released  = "released"
	expired   = "expired"
	retried   = "retried"
)

// What a task and a claim get when nothing is said, and how long a claim
// request is remembered after its last claim has ended.
const (
	attemptsByDefault = 3
	leaseByDefault    = 30_000
	attemptsKept      = 20
	rememberedMS      = 10 * 60 * 1000
)

// task is one task. A version of it never changes: every change makes a new one,
// so that an answer can keep the one it was given.
type task struct {
	id       uint64
	kind     string
	body     string
	opaque   bool
	priority int32
	max      int32 // 0: no limit
	attempts int32
	key      string
	leaseMS  int64 // as submitted

	status    string
	worker    string
	token     uint64
	seq       uint32 // of extends
	claimMS   int64  // how long the current claim lasts
	endU      int64
	claimedAt int64

	createdAt, updatedAt, completedAt int64

	result string
	binary bool // the result is no JSON
	reason string

	log []attempt // shared between versions, never changed
}

// attempt is one claim in a task's log.
type attempt struct {
	worker             string
	token              uint64
	claimedAt, endedAt int64
	outcome            string // "" while it lives
	reason             string
}

// remembered is a claim request and what it was answered.
type remembered struct {
	worker string
	choice command // what chose the tasks; the rest of it is zero
	claims []claimOf
	endedU int64 // when its last claim ended; -1 while one lives
}

// claimOf names a claim.
type claimOf struct{ id, token uint64 }

// model is the queue, from the contract alone and as plain as can be: tasks in
// the order of submission, looked through from the first to the last.
type model struct {
	u, t     int64
	tasks    []*task // by id-1; nil: deleted
	oldest   int     // all before are deleted or have ended: only where to begin looking
	keys     map[string]uint64
	requests map[string]*remembered
	byToken  map[uint64]*remembered // of live claims
	tokens   uint64                 // given out
	level    uint32
	nodes    []string
	begun    []begun // by the entry being applied
}

// begun is a claim that an entry began.
type begun struct {
	id, token uint64
	endU      int64
}

func newModel() *model {
	return &model{keys: map[string]uint64{}, requests: map[string]*remembered{}, byToken: map[uint64]*remembered{}}
}

// answer is what one command is answered.
type answer struct {
	code      string
	repeated  bool
	task      *task
	submitted []submittedTask
	claims    []claimedTask
	expired   int
}

type submittedTask struct {
	task          *task
	created, same bool
}

type claimedTask struct {
	task  *task // nil: it was deleted
	id    uint64
	token uint64
	live  bool
}

// entry applies the commands of an entry.
func (m *model) entry(u, t int64, commands []*command) []answer {
	m.u, m.t = max(m.u, u), max(m.t, t)
	m.begun = nil
	answers := make([]answer, len(commands))
	for i, c := range commands {
		answers[i] = m.command(c)
	}
	return answers
}

func (m *model) command(c *command) answer {
	switch c.verb {
	case verbSubmit:
		a := answer{submitted: make([]submittedTask, len(c.tasks))}
		for i := range c.tasks {
			a.submitted[i] = m.submit(&c.tasks[i])
		}
		return a
	case verbClaimNext:
		return m.claimNext(c)
	case verbClaimTask:
		return m.claimTask(c)
	case verbComplete:
		return m.settle(c, completed, func(t *task) {
			t.result, t.binary = c.result, c.opaque && c.result != ""
			m.endClaim(t, completed, "", completed)
		})
	case verbFail:
		return m.settle(c, failed, func(t *task) {
			t.reason = c.reason
			m.endClaim(t, failed, c.reason, nextOf(t))
		})
	case verbExtend:
		return m.settle(c, "", func(t *task) { m.lengthen(t, c.leaseMS) })
	case verbRelease:
		return m.settle(c, released, func(t *task) {
			t.attempts--
			m.endClaim(t, released, "", pending)
		})
	case verbRetry:
		return m.retry(c)
	case verbDelete:
		return m.delete(c.id)
	case verbExpire:
		return m.expire(c.items)
	case verbSetNode:
		if !slices.Contains(m.nodes, c.node) {
			m.nodes = append(m.nodes, c.node)
		}
	case verbSetLevel:
		m.level = max(m.level, c.level)
	case verbTick, verbCheckpoint:
	}
	return answer{}
}

// find returns the task, nil if there is none.
func (m *model) find(id uint64) *task {
	if id == 0 || id > uint64(len(m.tasks)) {
		return nil
	}
	return m.tasks[id-1]
}

// change returns a new version of the task, in its place.
func (m *model) change(t *task) *task {
	c := *t
	c.updatedAt = m.t
	m.tasks[t.id-1] = &c
	return &c
}

func (m *model) submit(n *newTask) submittedTask {
	if n.key != "" {
		if t := m.find(m.keys[n.key]); t != nil {
			return submittedTask{task: t, same: t.kind == n.kind && t.body == n.body && t.opaque == n.opaque}
		}
	}
	t := &task{
		id: uint64(len(m.tasks) + 1), kind: n.kind, body: n.body, opaque: n.opaque, priority: n.priority, max: n.max,
		key: n.key, leaseMS: n.leaseMS, status: pending, createdAt: m.t, updatedAt: m.t,
	}
	if n.max == -1 {
		t.max = attemptsByDefault
	}
	m.tasks = append(m.tasks, t)
	if n.key != "" {
		m.keys[n.key] = t.id
	}
	return submittedTask{task: t, created: true}
}

// choiceOf is what must be equal in a repeat of a claim request.
func choiceOf(c *command) command {
	return command{verb: c.verb, id: c.id, types: c.types, byCreated: c.byCreated, ascending: c.ascending, limit: c.limit}
}

func sameChoice(a, b *command) bool {
	return a.verb == b.verb && a.id == b.id && slices.Equal(a.types, b.types) &&
		a.byCreated == b.byCreated && a.ascending == b.ascending && a.limit == b.limit
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
	a.repeated = true
	for _, cl := range r.claims {
		t := m.find(cl.id)
		a.claims = append(a.claims, claimedTask{
			task: t, id: cl.id, token: cl.token,
			live: t != nil && t.status == claimed && t.token == cl.token,
		})
	}
	return a, true
}

// remember keeps what a claim request was answered, if it took anything.
func (m *model) remember(c *command, a answer) {
	if c.request == "" || len(a.claims) == 0 {
		return
	}
	r := &remembered{worker: c.worker, choice: choiceOf(c), endedU: -1}
	for _, cl := range a.claims {
		r.claims = append(r.claims, claimOf{cl.id, cl.token})
		m.byToken[cl.token] = r
	}
	m.requests[c.request] = r
}

func (m *model) claimNext(c *command) answer {
	if a, known := m.recall(c); known {
		return a
	}
	var a answer
	for len(a.claims) < c.limit {
		t := m.choose(c)
		if t == nil {
			break
		}
		t = m.begin(t, c)
		a.claims = append(a.claims, claimedTask{task: t, id: t.id, token: t.token, live: true})
	}
	m.remember(c, a)
	return a
}

// choose returns the task that a claim takes next, nil if there is none.
func (m *model) choose(c *command) *task {
	var best *task
	for m.oldest < len(m.tasks) && (m.tasks[m.oldest] == nil || m.tasks[m.oldest].status == completed) {
		m.oldest++ // nothing brings these back
	}
	for _, t := range m.tasks[m.oldest:] { // the oldest first
		if t == nil || t.status != pending || c.types != nil && !slices.Contains(c.types, t.kind) {
			continue
		}
		switch {
		case best == nil:
			best = t
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
	t = m.begin(t, c)
	a := answer{task: t, claims: []claimedTask{{task: t, id: t.id, token: t.token, live: true}}}
	m.remember(c, a)
	return a
}

// begin begins a claim and returns the task.
func (m *model) begin(t *task, c *command) *task {
	t = m.change(t)
	m.tokens++
	lease := c.leaseMS
	if lease == 0 {
		lease = t.leaseMS
	}
	if lease == 0 {
		lease = leaseByDefault
	}
	t.status, t.worker, t.token, t.claimedAt = claimed, c.worker, m.tokens, m.t
	t.seq, t.claimMS, t.endU = 1, lease, m.u+lease
	t.attempts++
	t.log = append(slices.Clone(t.log), attempt{worker: c.worker, token: t.token, claimedAt: m.t})
	if len(t.log) > attemptsKept {
		t.log = t.log[len(t.log)-attemptsKept:]
	}
	m.begun = append(m.begun, begun{t.id, t.token, t.endU})
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

// endClaim ends the claim of a version that is being changed.
func (m *model) endClaim(t *task, outcome, reason, to string) {
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
	t.status = to
	if to == pending {
		t.worker, t.token = "", 0
	} else {
		t.completedAt = m.t
	}
}

// settle is the contract's order of checks, sentence by sentence.
func (m *model) settle(c *command, outcome string, do func(*task)) answer {
	t := m.find(c.id)
	if t == nil { // the task exists
		return answer{code: "task_not_found"}
	}
	// A task remembers how its last claim ended.
	for i := len(t.log) - 1; i >= 0; i-- {
		last := &t.log[i]
		if last.outcome == "" {
			continue
		}
		byToken := c.token != 0 && c.token == last.token
		byWorker := c.token == 0 && ended(t.status) && c.worker == last.worker
		if last.outcome == outcome && (byToken || byWorker) {
			return answer{repeated: true, task: t}
		}
		break
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
	return answer{task: t}
}

func (m *model) retry(c *command) answer {
	t := m.find(c.id)
	switch {
	case t == nil:
		return answer{code: "task_not_found"}
	case t.status == completed:
		return answer{code: "task_completed", task: t}
	case t.status == pending:
		return answer{repeated: true, task: t}
	case c.token != 0 && c.token != t.token:
		return answer{code: "stale_claim", task: t}
	}
	limit := t.max
	if limit != 0 {
		limit += c.add
	}
	if limit != 0 && t.attempts >= limit {
		return answer{code: "max_attempts_reached", task: t}
	}
	t = m.change(t)
	t.max = limit
	if t.status == claimed {
		m.endClaim(t, retried, "", pending)
	} else {
		t.status, t.worker, t.token, t.completedAt = pending, "", 0, 0
	}
	return answer{task: t}
}

func (m *model) delete(id uint64) answer {
	t := m.find(id)
	switch {
	case t == nil:
		return answer{code: "task_not_found"}
	case !ended(t.status):
		return answer{code: "task_not_terminal", task: t}
	}
	m.tasks[id-1] = nil
	if t.key != "" {
		delete(m.keys, t.key)
	}
	return answer{task: t}
}

func (m *model) expire(items []leaseItem) answer {
	var a answer
	for _, l := range items {
		t := m.find(l.id)
		if t == nil || t.status != claimed || t.token != l.token || t.seq != l.seq {
			continue
		}
		t = m.change(t)
		to := nextOf(t)
		if to == failed {
			t.reason = "lease expired"
		}
		m.endClaim(t, expired, "", to)
		a.expired++
	}
	return a
}

// nextOf returns where a task goes whose attempt did not succeed.
func nextOf(t *task) string {
	if t.max != 0 && t.attempts >= t.max {
		return failed
	}
	return pending
}

func ended(status string) bool { return status == completed || status == failed }
