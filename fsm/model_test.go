package fsm

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// model is the state machine written a second time, from the contract alone
// and as plainly as can be: slices and linear scans. It shares the types of
// commands and results with the machine, nothing else.
type model struct {
	index    uint64
	u, t     int64
	level    uint32
	tasks    []*Task // by id
	ids      uint64  // given out
	tokens   uint64  // given out
	requests []*modelRequest
	nodes    []NodeRecord
	begun    []Lease
	most     int // claims that requests may remember
}

type modelRequest struct {
	id, worker string
	what       any // ClaimNext or ClaimTask without lease and request id
	claims     []ClaimRef
	endedU     int64 // when its last claim was seen to have ended; -1 while one lives
}

func (s *model) apply(e testEntry) Applied {
	s.index, s.u, s.t = e.Index, max(s.u, e.Stamp.U), max(s.t, e.Stamp.T)
	s.begun = nil
	a := Applied{Index: e.Index, Stamp: Stamp{U: s.u, T: s.t}}
	for _, c := range e.Commands {
		a.Results = append(a.Results, s.command(c))
		if _, ok := c.(Checkpoint); ok {
			a.Checkpoint = true
		}
		for _, r := range s.requests {
			if r.endedU < 0 && !slices.ContainsFunc(r.claims, s.lives) {
				r.endedU = s.u
			}
		}
	}
	a.Leases = s.begun
	return a
}

func (s *model) command(c Command) Result {
	switch c := c.(type) {
	case Submit:
		var r Result
		for _, n := range c.Tasks {
			r.Submitted = append(r.Submitted, s.submit(n))
		}
		return r
	case ClaimNext:
		what := c
		what.LeaseMS, what.RequestID = 0, ""
		return s.requested(c.RequestID, c.WorkerID, what, func() Result { return s.claimNext(c) })
	case ClaimTask:
		what := c
		what.LeaseMS, what.RequestID = 0, ""
		return s.requested(c.RequestID, c.WorkerID, what, func() Result { return s.claimTask(c) })
	case Complete:
		return s.settle(c.Hold, OutcomeCompleted, func(t *Task) {
			t.Result, t.ResultPayload = c.Result, c.ResultPayload
			s.endClaim(t, StatusCompleted, OutcomeCompleted, "")
		})
	case Fail:
		return s.settle(c.Hold, OutcomeFailed, func(t *Task) {
			t.Error = c.Error
			to := StatusPending
			if t.MaxAttempts != 0 && t.Attempts >= t.MaxAttempts {
				to = StatusFailed
			}
			s.endClaim(t, to, OutcomeFailed, c.Error)
		})
	case Extend:
		return s.settle(c.Hold, OutcomeNone, func(t *Task) { s.lengthen(t, c.LeaseMS) })
	case Release:
		return s.settle(c.Hold, OutcomeReleased, func(t *Task) {
			t.Attempts--
			s.endClaim(t, StatusPending, OutcomeReleased, "")
		})
	case Retry:
		return s.retry(c)
	case Delete:
		return s.delete(c.ID)
	case Expire:
		return s.expire(c)
	case SetNode:
		s.nodes = slices.DeleteFunc(s.nodes, func(n NodeRecord) bool { return n.UUID == c.Node.UUID })
		s.nodes = append(s.nodes, c.Node)
		return Result{}
	case RemoveNode:
		s.nodes = slices.DeleteFunc(s.nodes, func(n NodeRecord) bool { return n.UUID == c.UUID })
		return Result{}
	case SetLevel:
		s.level = max(s.level, c.Level)
		return Result{}
	}
	return Result{} // Tick and Checkpoint change nothing that can be seen
}

func (s *model) find(id uint64) *Task {
	for _, t := range s.tasks {
		if t.ID == id {
			return t
		}
	}
	return nil
}

func (s *model) submit(n NewTask) Submitted {
	for _, t := range s.tasks {
		if n.Key != "" && t.Key == n.Key {
			same := t.Type == n.Type && string(t.Params) == string(n.Params) && string(t.Payload) == string(n.Payload)
			return Submitted{Task: s.answer(t), SameRequest: same}
		}
	}
	s.ids++
	t := &Task{
		ID: s.ids, Type: n.Type, Params: n.Params, Payload: n.Payload, Priority: n.Priority, MaxAttempts: n.MaxAttempts,
		Key: n.Key, LeaseMS: n.LeaseMS, Status: StatusPending, CreatedAt: s.t, UpdatedAt: s.t,
	}
	if t.MaxAttempts == DefaultAttempts {
		t.MaxAttempts = 3
	}
	s.tasks = append(s.tasks, t)
	return Submitted{Task: s.answer(t), Created: true}
}

// answer is a copy that later changes do not reach.
func (s *model) answer(t *Task) *Task {
	c := *t
	c.Log = slices.Clone(t.Log)
	return &c
}

// requested goes by what is remembered of the claim request, else claims, and
// remembers what was taken.
func (s *model) requested(id, worker string, what any, claim func() Result) Result {
	if id == "" {
		return claim()
	}
	for i, r := range s.requests {
		if r.id != id {
			continue
		}
		if r.endedU >= 0 && s.u >= r.endedU+600_000 {
			s.requests = slices.Delete(s.requests, i, i+1)
			break
		}
		if r.worker != worker || !cmp.Equal(r.what, what) {
			return Result{Code: CodeInvalidRequest}
		}
		again := Result{Repeated: true}
		for _, c := range r.claims {
			claim := Claim{Task: Task{ID: c.TaskID, Token: c.Token}, Token: c.Token, Live: s.lives(c)}
			if t := s.find(c.TaskID); t != nil {
				claim.Task = *s.answer(t)
			}
			again.Claims = append(again.Claims, claim)
		}
		return again
	}
	result := claim()
	if result.Code != "" || result.Repeated || len(result.Claims) == 0 {
		return result
	}
	r := &modelRequest{id: id, worker: worker, what: what, endedU: -1}
	for _, c := range result.Claims {
		r.claims = append(r.claims, ClaimRef{c.Task.ID, c.Token})
	}
	s.requests = append(s.requests, r)
	for n := 0; ; s.requests = s.requests[1:] { // the oldest make room
		n = 0
		for _, r := range s.requests {
			n += len(r.claims)
		}
		if n <= s.most {
			return result
		}
	}
}

func (s *model) lives(c ClaimRef) bool {
	t := s.find(c.TaskID)
	return t != nil && t.Status == StatusClaimed && t.Token == c.Token
}

func (s *model) claimNext(c ClaimNext) Result {
	var r Result
	for len(r.Claims) < int(c.Limit) {
		t := s.choose(c)
		if t == nil {
			break
		}
		s.beginClaim(t, c.WorkerID, c.LeaseMS)
		r.Claims = append(r.Claims, Claim{Task: *s.answer(t), Token: t.Token, Live: true})
	}
	return r
}

func (s *model) choose(c ClaimNext) *Task {
	var best *Task
	for _, t := range s.tasks { // the oldest first
		if t.Status != StatusPending || c.Types != nil && !slices.Contains(c.Types, t.Type) {
			continue
		}
		better := false
		switch {
		case best == nil:
			better = true
		case c.SortBy == SortPriority && c.Ascending:
			better = t.Priority < best.Priority
		case c.SortBy == SortPriority:
			better = t.Priority > best.Priority
		default:
			better = !c.Ascending
		}
		if better {
			best = t
		}
	}
	return best
}

func (s *model) claimTask(c ClaimTask) Result {
	t := s.find(c.ID)
	var r Result
	switch {
	case t == nil:
		return Result{Code: CodeTaskNotFound}
	case t.Status >= StatusCompleted:
		return Result{Code: s.endedCode(t), Task: s.answer(t)}
	case t.Status == StatusClaimed && t.WorkerID != c.WorkerID:
		return Result{Code: CodeTaskAlreadyClaimed, Task: s.answer(t)}
	case t.Status == StatusClaimed:
		s.lengthen(t, c.LeaseMS)
		r.Repeated = true
	default:
		s.beginClaim(t, c.WorkerID, c.LeaseMS)
	}
	r.Task = s.answer(t)
	r.Claims = []Claim{{Task: *s.answer(t), Token: t.Token, Live: true}}
	return r
}

func (s *model) endedCode(t *Task) Code {
	return map[Status]Code{StatusCompleted: CodeTaskCompleted, StatusFailed: CodeTaskFailed, StatusCancelled: CodeTaskCancelled}[t.Status]
}

func (s *model) beginClaim(t *Task, worker string, lease int64) {
	s.tokens++
	for _, l := range []int64{t.LeaseMS, 30_000} {
		if lease == 0 {
			lease = l
		}
	}
	t.Status, t.WorkerID, t.Token, t.ClaimedAt, t.UpdatedAt = StatusClaimed, worker, s.tokens, s.t, s.t
	t.LeaseSeq, t.ClaimLeaseMS, t.LeaseEndU = 1, lease, s.u+lease
	t.Attempts++
	t.Log = append(t.Log, Attempt{WorkerID: worker, Token: t.Token, ClaimedAt: s.t})
	if len(t.Log) > 20 {
		t.Log = t.Log[1:]
	}
	s.begun = append(s.begun, Lease{TaskID: t.ID, Token: t.Token, Seq: 1, EndU: t.LeaseEndU})
}

func (s *model) lengthen(t *Task, asked int64) {
	lease := asked
	if lease == 0 {
		lease = t.ClaimLeaseMS
	}
	if s.u+lease > t.LeaseEndU {
		t.LeaseEndU, t.ClaimLeaseMS = s.u+lease, lease
	}
	t.LeaseSeq++
	t.UpdatedAt = s.t
}

func (s *model) endClaim(t *Task, to Status, how Outcome, why string) {
	last := &t.Log[len(t.Log)-1]
	last.EndedAt, last.Outcome, last.Error = s.t, how, why
	t.LeaseSeq, t.ClaimLeaseMS, t.LeaseEndU, t.UpdatedAt, t.Status = 0, 0, 0, s.t, to
	if to == StatusPending {
		t.WorkerID, t.Token = "", 0
	} else {
		t.CompletedAt = s.t
	}
}

// settle is the contract's "order of checks", sentence by sentence.
func (s *model) settle(h Hold, how Outcome, do func(*Task)) Result {
	t := s.find(h.ID)
	if t == nil { // the task exists
		return Result{Code: CodeTaskNotFound}
	}
	// A task remembers how its last claim ended.
	var last Attempt
	for _, a := range t.Log {
		if a.EndedAt != 0 {
			last = a
		}
	}
	byToken := h.Token != 0 && h.Token == last.Token
	byWorker := h.Token == 0 && t.Status >= StatusCompleted && h.WorkerID == last.WorkerID
	if how != OutcomeNone && how == last.Outcome && (byToken || byWorker) {
		return Result{Repeated: true, Task: s.answer(t)}
	}
	refuse := func(c Code) Result { return Result{Code: c, Task: s.answer(t)} }
	if t.Status >= StatusCompleted { // it has not ended
		return refuse(s.endedCode(t))
	}
	if t.Status != StatusClaimed { // it is claimed
		if h.Token != 0 {
			return refuse(CodeStaleClaim)
		}
		return refuse(CodeTaskNotClaimed)
	}
	if t.WorkerID != h.WorkerID { // by this worker
		return refuse(CodeWrongWorker)
	}
	if h.Token != 0 && t.Token != h.Token { // with this token
		return refuse(CodeStaleClaim)
	}
	do(t)
	return Result{Task: s.answer(t)}
}

func (s *model) retry(c Retry) Result {
	t := s.find(c.ID)
	if t == nil {
		return Result{Code: CodeTaskNotFound}
	}
	refuse := func(c Code) Result { return Result{Code: c, Task: s.answer(t)} }
	if t.Status == StatusCompleted {
		return refuse(CodeTaskCompleted)
	}
	if t.Status == StatusPending {
		return Result{Repeated: true, Task: s.answer(t)}
	}
	if c.Token != 0 && t.Token != c.Token {
		return refuse(CodeStaleClaim)
	}
	if t.MaxAttempts != 0 {
		most := t.MaxAttempts + c.AddAttempts
		if t.Attempts >= most {
			return refuse(CodeMaxAttemptsReached)
		}
		t.MaxAttempts = most
	}
	if t.Status == StatusClaimed {
		s.endClaim(t, StatusPending, OutcomeRetried, "")
	}
	t.Status, t.WorkerID, t.Token, t.CompletedAt, t.UpdatedAt = StatusPending, "", 0, 0, s.t
	t.Result, t.ResultPayload = nil, nil
	return Result{Task: s.answer(t)}
}

func (s *model) delete(id uint64) Result {
	t := s.find(id)
	if t == nil {
		return Result{Code: CodeTaskNotFound}
	}
	if t.Status < StatusCompleted {
		return Result{Code: CodeTaskNotTerminal, Task: s.answer(t)}
	}
	s.tasks = slices.DeleteFunc(s.tasks, func(t *Task) bool { return t.ID == id })
	return Result{Task: s.answer(t)}
}

func (s *model) expire(c Expire) Result {
	var r Result
	for _, l := range c.Items {
		t := s.find(l.TaskID)
		if t == nil || t.Status != StatusClaimed || t.Token != l.Token || t.LeaseSeq != l.Seq {
			continue
		}
		r.Expired++
		to := StatusPending
		if t.MaxAttempts != 0 && t.Attempts >= t.MaxAttempts {
			to, t.Error = StatusFailed, "lease expired"
		}
		s.endClaim(t, to, OutcomeExpired, "")
	}
	return r
}

// list is the list with neither cursor nor bounds.
func (s *model) list(q ListQuery) []*Task {
	var tasks []*Task
	for _, t := range s.tasks {
		if (q.Status == 0 || q.Status == t.Status) && (q.Type == "" || q.Type == t.Type) && (q.WorkerID == "" || q.WorkerID == t.WorkerID) &&
			(q.Key == "" || q.Key == t.Key) && (q.CreatedAfter == 0 || t.CreatedAt > q.CreatedAfter) && (q.CreatedBefore == 0 || t.CreatedAt < q.CreatedBefore) {
			tasks = append(tasks, t)
		}
	}
	if q.Descending {
		slices.Reverse(tasks)
	}
	return tasks
}

func (s *model) stats(now Stamp) Stats {
	st := Stats{Index: s.index}
	for _, t := range s.tasks {
		st.Counts[t.Status]++
		at := slices.IndexFunc(st.Types, func(x TypeStats) bool { return x.Type == t.Type })
		if at < 0 {
			at = len(st.Types)
			st.Types = append(st.Types, TypeStats{Type: t.Type})
		}
		st.Types[at].Counts[t.Status]++
	}
	slices.SortFunc(st.Types, func(a, b TypeStats) int {
		if a.Type < b.Type {
			return -1
		}
		return 1
	})
	if i := slices.IndexFunc(s.tasks, func(t *Task) bool { return t.Status == StatusPending }); i >= 0 {
		st.OldestPendingAgeMS = max(0, now.T-s.tasks[i].CreatedAt)
	}
	return st
}

// alike compares results: an absent list equals an empty one.
var alike = cmp.Options{cmpopts.EquateEmpty(), cmpopts.IgnoreFields(Applied{}, "Ready", "Requeued", "Removed")}

// TestMachine_MatchesModel applies random logs to the machine and to the
// model: every result, every task and every count is the same.
func TestMachine_MatchesModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		most := rapid.SampledFrom([]int{5, 1_000_000}).Draw(rt, "remembered")
		m, s := New(), &model{most: most}
		m.rememberedMax = most
		for _, e := range drawLog(rt, 40) {
			got, err := m.apply(e.Index, e.Stamp, e.Commands)
			if err != nil {
				rt.Fatalf("apply %d: %v", e.Index, err)
			}
			if diff := cmp.Diff(s.apply(e), got, alike); diff != "" {
				rt.Fatalf("entry %+v (-model +machine):\n%s", e, diff)
			}
			if err := m.check(); err != nil {
				rt.Fatalf("entry %+v: %v", e, err)
			}
			compareReads(rt, m, s)
		}
	})
}

func compareReads(t *rapid.T, m *Machine, s *model) {
	var tasks []*Task
	for _, task := range m.tasks.all() {
		tasks = append(tasks, task)
	}
	if diff := cmp.Diff(s.tasks, tasks, alike); diff != "" {
		t.Fatalf("tasks (-model +machine):\n%s", diff)
	}
	now := Stamp{U: s.u + 1, T: s.t + 100}
	stats := m.Stats(now)
	stats.Bytes = 0
	if diff := cmp.Diff(s.stats(now), stats, alike); diff != "" {
		t.Fatalf("stats (-model +machine):\n%s", diff)
	}
	slices.SortFunc(s.nodes, func(a, b NodeRecord) int {
		if a.UUID < b.UUID {
			return -1
		}
		return 1
	})
	if diff := cmp.Diff(s.nodes, m.Nodes(), alike); diff != "" || s.level != m.Level() {
		t.Fatalf("level %d, want %d; nodes (-model +machine):\n%s", m.Level(), s.level, diff)
	}
	dice := rapid.Uint32()
	g := newGenerator(func(n int) int { return int(dice.Draw(t, "die") % uint32(n)) })
	compareList(t, g, m, s)
	compareClaimable(t, g, m, s)
}

// compareList reads a list page by page.
func compareList(t *rapid.T, g *generator, m *Machine, s *model) {
	q := ListQuery{
		Status:     pick(g, 0, StatusPending, StatusClaimed, StatusCompleted),
		Type:       pick(g, "", "mail"),
		WorkerID:   pick(g, "", "", "w1"),
		Key:        pick(g, "", "", "k1"),
		Descending: g.dice(2) == 0,
		Limit:      pick(g, 1, 3, 1000),
	}
	if len(s.tasks) > 0 {
		q.CreatedAfter = pick(g, 0, 0, s.tasks[g.dice(len(s.tasks))].CreatedAt)
		q.CreatedBefore = pick(g, 0, 0, s.tasks[g.dice(len(s.tasks))].CreatedAt)
	}
	var got []*Task
	for page := (ListPage{Next: q.From}); ; {
		q.From = page.Next
		page = m.List(q)
		if len(page.Tasks) > q.Limit {
			t.Fatalf("a page of %d tasks, limit %d", len(page.Tasks), q.Limit)
		}
		got = append(got, page.Tasks...)
		if page.Next == 0 {
			break
		}
	}
	q.From = 0
	if diff := cmp.Diff(s.list(q), got, alike); diff != "" {
		t.Fatalf("list %+v (-model +machine):\n%s", q, diff)
	}
}

func compareClaimable(t *rapid.T, g *generator, m *Machine, s *model) {
	c := g.claimNext().(ClaimNext)
	want := s.choose(c) != nil
	for _, r := range s.requests {
		if c.RequestID != "" && r.id == c.RequestID && (r.endedU < 0 || s.u < r.endedU+600_000) {
			want = true
		}
	}
	if got := m.Claimable(c, m.Stamp()); got != want {
		t.Fatalf("claimable %+v: %v, want %v", c, got, want)
	}
}
