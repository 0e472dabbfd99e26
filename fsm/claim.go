package fsm

import "math"

// answerBytesMax bounds the tasks' own bytes in one answer: params, payload,
// results and errors. An answer has at least one task all the same.
const answerBytesMax = 8 << 20

// claimNext claims the first pending tasks of the types asked for.
func (m *Machine) claimNext(c ClaimNext) Result {
	choice := choiceOfNext(c)
	if result, known := m.repeatRequest(c.RequestID, c.WorkerID, choice); known {
		return result
	}
	var (
		memory [4]*queue
		next   = m.newChooser(c, memory[:0])
		claims []Claim
		size   int
		seq    uint64
	)
	for len(claims) < int(c.Limit) {
		id, ok := next.first()
		if !ok {
			break
		}
		size += answerBytes(m.tasks.get(id))
		if size > answerBytesMax && len(claims) > 0 {
			break
		}
		if claims == nil {
			claims = make([]Claim, 0, min(int64(c.Limit), m.counts[StatusPending]))
			seq = m.nextRequest(c.RequestID)
		}
		t := m.begin(id, c.WorkerID, c.LeaseMS, seq)
		claims = append(claims, Claim{Task: *t, Token: t.Token, Live: true})
		next.taken()
	}
	m.remember(seq, c.RequestID, c.WorkerID, choice, claims)
	return Result{Claims: claims}
}

// Claimable reports whether applying c now would take a task or repeat an
// earlier answer.
func (m *Machine) Claimable(c ClaimNext) bool {
	if r, _ := m.findRequest(c.RequestID); r != nil {
		return true
	}
	var memory [4]*queue
	next := m.newChooser(c, memory[:0])
	_, ok := next.first()
	return ok
}

// claimTask claims one task by its id.
func (m *Machine) claimTask(c ClaimTask) Result {
	choice := choiceOfTask(c)
	if result, known := m.repeatRequest(c.RequestID, c.WorkerID, choice); known {
		return result
	}
	t := m.tasks.get(c.ID)
	switch {
	case t == nil:
		return Result{Code: CodeTaskNotFound}
	case t.Status.Ended():
		return refused(endedCode(t.Status), t)
	case t.Status == StatusClaimed && t.WorkerID == c.WorkerID:
		// It takes nothing, so the request is not remembered.
		result := oneClaim(m.extendLease(c.ID, c.LeaseMS))
		result.Repeated = true
		return result
	case t.Status == StatusClaimed:
		return refused(CodeTaskAlreadyClaimed, t)
	case t.Status != StatusPending:
		return refused(CodeTaskNotClaimable, t)
	}
	seq := m.nextRequest(c.RequestID)
	result := oneClaim(m.begin(c.ID, c.WorkerID, c.LeaseMS, seq))
	m.remember(seq, c.RequestID, c.WorkerID, choice, result.Claims)
	return result
}

// oneClaim is the answer that holds the claimed task.
func oneClaim(t *Task) Result {
	claims := []Claim{{Task: *t, Token: t.Token, Live: true}}
	return Result{Task: &claims[0].Task, Claims: claims}
}

// begin begins a claim of the pending task and returns the task. The claim
// request with that sequence number, if not 0, is told when the claim ends.
func (m *Machine) begin(id uint64, workerID string, leaseMS int64, request uint64) *Task {
	t := m.edit(id)
	t.Status = StatusClaimed
	if t.Attempts < math.MaxInt32 {
		t.Attempts++
	}
	if leaseMS == 0 {
		leaseMS = t.LeaseMS
	}
	if leaseMS == 0 {
		leaseMS = defaultLeaseMS
	}
	t.WorkerID = workerID
	t.Token = m.header.NextToken
	m.header.NextToken++
	t.LeaseSeq = 1
	t.ClaimLeaseMS = leaseMS
	t.LeaseEndU = m.header.Stamp.U + leaseMS
	t.ClaimedAt = m.header.Stamp.T
	t.Log = logBegun(t.Log, Attempt{WorkerID: workerID, Token: t.Token, ClaimedAt: t.ClaimedAt})
	m.edited(t)

	m.claims.Set(t.Token, claimRef{task: id, request: request})
	m.begun = append(m.begun, leaseOf(t))
	return t
}

// logBegun returns the attempts log with one more attempt, without the oldest
// one if it is full.
func logBegun(log []Attempt, a Attempt) []Attempt {
	if len(log) >= attemptsLogMax {
		log = log[len(log)-attemptsLogMax+1:]
	}
	longer := make([]Attempt, len(log)+1)
	copy(longer, log)
	longer[len(log)] = a
	return longer
}

// leaseOf returns the lease of a claimed task.
func leaseOf(t *Task) Lease {
	return Lease{TaskID: t.ID, Token: t.Token, Seq: t.LeaseSeq, EndU: t.LeaseEndU}
}

// ClaimCount returns how many claims are live.
func (m *Machine) ClaimCount() int { return m.claims.Len() }

// chooser finds the tasks that one ClaimNext takes, first to last.
type chooser struct {
	order order
	any   *readyTypes // if every type will do
	// queues are those of the listed types that are not empty: a binary heap,
	// the queue with the first task on top.
	queues []*queue
}

// newChooser returns the chooser of c. It looks at the first tasks of the types
// asked for, at nothing else. It appends to queues, which is empty.
func (m *Machine) newChooser(c ClaimNext, queues []*queue) chooser {
	n := chooser{order: orderOf(c)}
	if c.Types == nil {
		n.any = &m.ready
		return n
	}
	n.queues = queues
	for _, name := range c.Types {
		if ts := m.types[name]; ts != nil && len(ts.queue.levels) > 0 {
			n.queues = append(n.queues, &ts.queue)
		}
	}
	for at := len(n.queues)/2 - 1; at >= 0; at-- {
		n.down(at)
	}
	return n
}

// first returns the id of the next task to take.
func (n *chooser) first() (id uint64, ok bool) {
	if n.any != nil {
		return n.any.first(n.order)
	}
	if len(n.queues) == 0 {
		return 0, false
	}
	return n.queues[0].ranks[n.order].task(n.order), true
}

// taken is called when the task that first named has left its queue.
func (n *chooser) taken() {
	if n.any != nil {
		return // kept up to date by the queues themselves
	}
	if len(n.queues[0].levels) == 0 {
		last := len(n.queues) - 1
		n.queues[0] = n.queues[last]
		n.queues = n.queues[:last]
	}
	n.down(0)
}

func (n *chooser) down(at int) {
	for {
		child := 2*at + 1
		if child >= len(n.queues) {
			return
		}
		if right := child + 1; right < len(n.queues) && n.before(right, child) {
			child = right
		}
		if !n.before(child, at) {
			return
		}
		n.queues[at], n.queues[child] = n.queues[child], n.queues[at]
		at = child
	}
}

func (n *chooser) before(a, b int) bool {
	return n.queues[a].ranks[n.order].before(n.queues[b].ranks[n.order])
}
