package check

import (
	"container/heap"
	"fmt"
	"math/rand"
	"time"

	"github.com/claimq/claimq/jepsen/history"
)

// sim is a small correct queue with virtual time and the callers of a run: the
// source of good histories. It is written for the tests of the checker and
// shares nothing with its model.
type sim struct {
	rng    *rand.Rand
	now    int64
	events eventHeap
	order  int

	tasks     []*simTask // id - 1
	pending   []*simTask
	open      int // tasks that have not ended
	byKey     map[string]uint64
	requests  map[string]*simClaim
	lastToken uint64
	index     uint64 // of the last entry

	h         *history.History
	requestNo int
	left      int // ops that may still be made
}

type simTask struct {
	history.Task
	max       int32
	seq       int // of the lease
	lastKind  history.Kind
	lastToken uint64
}

type simClaim struct {
	task     uint64
	token    uint64
	attempts int32
}

const (
	simLatency = int64(2 * time.Millisecond)
	simTimeout = int64(40 * time.Millisecond)
	simLeaseMS = 60
)

type event struct {
	at    int64
	order int
	do    func()
}

type eventHeap []event

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].order < h[j].order
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(x any)   { *h = append(*h, x.(event)) }
func (h *eventHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

// goodHistory returns a history of about ops calls by producers and workers
// against a correct queue, with unknown outcomes, repeats and leases that ran
// out. It is drained.
func goodHistory(seed int64, ops int) *history.History {
	s := &sim{
		rng: rand.New(rand.NewSource(seed)), byKey: map[string]uint64{}, requests: map[string]*simClaim{},
		h: &history.History{Seed: seed}, left: ops,
	}
	for p := range 4 {
		s.at(int64(p), func() { s.produce(p, 0) })
	}
	for p := 4; p < 16; p++ {
		s.at(int64(p), func() { s.work(p) })
	}
	for p := 16; p < 18; p++ {
		s.at(int64(p), func() { s.read(p) })
	}
	for s.events.Len() > 0 {
		e := heap.Pop(&s.events).(event)
		s.now = e.at
		e.do()
	}
	s.h.Final = &history.Final{Call: s.now + 10, Return: s.now + 20}
	for _, t := range s.tasks {
		s.h.Final.Tasks = append(s.h.Final.Tasks, t.Task)
	}
	return s.h
}

func (s *sim) at(when int64, do func()) {
	s.order++
	heap.Push(&s.events, event{when, s.order, do})
}

func (s *sim) after(max int64, do func()) { s.at(s.now+1+s.rng.Int63n(max), do) }

// call makes op: effect fills in its answer when it takes effect, then goes on
// once the caller knows or has given up.
func (s *sim) call(op history.Op, effect func(op *history.Op), then func(op history.Op)) {
	s.left--
	op.Call = s.now
	if s.rng.Intn(20) != 0 {
		s.after(simLatency, func() {
			op.Outcome = history.OK
			s.do(&op, effect)
			s.after(simLatency, func() {
				op.Return = s.now
				s.h.Ops = append(s.h.Ops, op)
				then(op)
			})
		})
		return
	}
	if s.rng.Intn(2) == 0 { // it takes effect, perhaps long after the caller gave up
		s.after(3*simTimeout, func() { lost := op; s.do(&lost, effect) })
	}
	s.at(s.now+simTimeout, func() {
		op.Outcome, op.Return = history.Unknown, s.now
		s.h.Ops = append(s.h.Ops, op)
		then(op)
	})
}

// do does what op asks for, as an entry or a read.
func (s *sim) do(op *history.Op, effect func(op *history.Op)) {
	if op.Kind != history.Get {
		s.index++
	}
	effect(op)
	op.Index = s.index
}

// again makes op until its outcome is known.
func (s *sim) again(op history.Op, effect func(op *history.Op), then func(op history.Op)) {
	s.call(op, effect, func(got history.Op) {
		if got.Outcome == history.Unknown {
			s.after(simLatency, func() { s.again(op, effect, then) })
			return
		}
		then(got)
	})
}

func (s *sim) produce(p, n int) {
	if s.left < 0 {
		return
	}
	op := history.Op{Process: p, Kind: history.Submit, Key: fmt.Sprintf("k%d-%d", p, n), MaxAttempts: int32(s.rng.Intn(3)) * 5}
	s.again(op, func(op *history.Op) {
		id, taken := s.byKey[op.Key]
		if !taken {
			id = uint64(len(s.tasks) + 1)
			s.byKey[op.Key] = id
			t := &simTask{Task: history.Task{ID: id, Key: op.Key}, max: op.MaxAttempts}
			s.tasks = append(s.tasks, t)
			s.open++
			s.requeue(t)
		}
		op.TaskID, op.Created = id, !taken
	}, func(history.Op) { s.after(4*simLatency, func() { s.produce(p, n+1) }) })
}

func (s *sim) read(p int) {
	if s.left < 0 || len(s.tasks) == 0 {
		if s.left >= 0 {
			s.after(simLatency, func() { s.read(p) })
		}
		return
	}
	recent := max(len(s.tasks)-50, 0)
	id := uint64(recent + s.rng.Intn(len(s.tasks)-recent) + 1)
	s.call(history.Op{Process: p, Kind: history.Get, TaskID: id}, func(op *history.Op) {
		seen := s.tasks[id-1].Task
		op.Seen = &seen
	}, func(history.Op) { s.after(simLatency, func() { s.read(p) }) })
}

func (s *sim) work(p int) {
	s.requestNo++
	worker := fmt.Sprintf("w%d", p)
	op := history.Op{Process: p, Kind: history.Claim, Worker: worker, RequestID: fmt.Sprintf("r%d", s.requestNo), LeaseMS: simLeaseMS}
	effect := func(op *history.Op) { s.claim(op) }
	then := func(got history.Op) {
		switch {
		case got.Outcome == history.OK:
			s.handle(p, got)
		case s.left >= 0 || s.open > 0:
			s.after(4*simLatency, func() { s.work(p) })
		}
	}
	if s.rng.Intn(50) == 0 {
		s.call(op, effect, then) // gives up on an unknown outcome
		return
	}
	s.again(op, effect, then)
}

func (s *sim) requeue(t *simTask) {
	t.Status, t.Token, t.Worker = "pending", 0, ""
	s.pending = append(s.pending, t)
}

func (s *sim) claim(op *history.Op) {
	if c := s.requests[op.RequestID]; c != nil {
		op.TaskID, op.Token, op.Repeated = c.task, c.token, true
		return
	}
	if len(s.pending) == 0 {
		op.Outcome, op.Code = history.Failed, "no_pending_tasks"
		return
	}
	n := s.rng.Intn(len(s.pending))
	t := s.pending[n]
	last := len(s.pending) - 1
	s.pending[n] = s.pending[last]
	s.pending = s.pending[:last]
	s.lastToken++
	t.Status, t.Token, t.Worker = "claimed", s.lastToken, op.Worker
	t.Attempts++
	s.lease(t, op.LeaseMS)
	s.requests[op.RequestID] = &simClaim{t.ID, t.Token, t.Attempts}
	seen := t.Task
	op.TaskID, op.Token, op.Seen = t.ID, t.Token, &seen
}

// lease starts or extends the lease of t's claim.
func (s *sim) lease(t *simTask, ms int64) {
	t.seq++
	seq, token := t.seq, t.Token
	s.at(s.now+ms*int64(time.Millisecond)+s.rng.Int63n(simTimeout), func() {
		if t.Status == "claimed" && t.Token == token && t.seq == seq {
			s.attemptOver(t, "expired")
		}
	})
}

func (s *sim) attemptOver(t *simTask, how history.Kind) {
	t.lastKind, t.lastToken = how, t.Token
	if t.max > 0 && t.Attempts >= t.max {
		t.Status = "failed"
		s.open--
		return
	}
	s.requeue(t)
}

// handle is a worker with a claim.
func (s *sim) handle(p int, claim history.Op) {
	hold := history.Op{Process: p, TaskID: claim.TaskID, Token: claim.Token, Worker: claim.Worker}
	settle := func(kind history.Kind) {
		op := hold
		op.Kind = kind
		if kind == history.Complete {
			op.Result = fmt.Sprintf(`{"token":%d}`, op.Token)
		}
		s.again(op, func(op *history.Op) { s.settle(op) }, func(history.Op) { s.after(simLatency, func() { s.work(p) }) })
	}
	switch n := s.rng.Intn(20); {
	case n < 12:
		s.after(4*simLatency, func() { settle(history.Complete) })
	case n < 14:
		settle(history.Fail)
	case n < 16:
		settle(history.Release)
	case n < 18:
		op := hold
		op.Kind, op.LeaseMS = history.Extend, 2*simLeaseMS
		s.after(simLatency, func() {
			s.call(op, func(op *history.Op) { s.settle(op) }, func(history.Op) { settle(history.Complete) })
		})
	default: // long after the lease
		s.at(s.now+3*simLeaseMS*int64(time.Millisecond), func() { settle(history.Complete) })
	}
}

// settle applies a complete, fail, release or extend to the queue.
func (s *sim) settle(op *history.Op) {
	t := s.tasks[op.TaskID-1]
	refuse := func(code string) { op.Outcome, op.Code = history.Failed, code }
	switch {
	case op.Kind != history.Extend && t.lastKind == op.Kind && t.lastToken == op.Token:
		op.Repeated = true
	case t.Status == "completed":
		refuse("task_completed")
	case t.Status == "failed":
		refuse("task_failed")
	case t.Status != "claimed":
		refuse("stale_claim")
	case t.Worker != op.Worker:
		refuse("wrong_worker")
	case t.Token != op.Token:
		refuse("stale_claim")
	case op.Kind == history.Extend:
		s.lease(t, op.LeaseMS)
	case op.Kind == history.Complete:
		t.lastKind, t.lastToken = op.Kind, op.Token
		t.Status, t.Result = "completed", op.Result
		s.open--
	case op.Kind == history.Release:
		t.lastKind, t.lastToken = op.Kind, op.Token
		t.Attempts--
		s.requeue(t)
	default:
		s.attemptOver(t, op.Kind)
	}
}
