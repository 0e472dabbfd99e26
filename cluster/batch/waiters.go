package batch

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tidwall/btree"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// anyType is the queue of claims of any type. No task has this type.
const anyType = ""

// WaitersConfig connects the waiters to their leadership.
type WaitersConfig struct {
	// Batcher takes their commands.
	Batcher *Batcher
	// Read calls its argument with the state under its read lock.
	Read func(func(*fsm.Machine))
	// Claimable is fsm.Machine.Claimable at the current time.
	Claimable func(*fsm.Machine, command.ClaimNext) bool
	// Woken counts the waiters that are proposed.
	Woken func(count int)
	// Max bounds the waiting claims, each of which takes a goroutine and its request's memory.
	// MaxBytes bounds their total of waiter.bytes.
	Max      int
	MaxBytes int64
}

// Waiters holds the claims that wait during one leadership, in order of arrival.
//
// A waiter is parked in a queue for each type that it lists. An entry that makes tasks claimable
// reports how many of which types (NoteReady). They are promised to the first waiters that can take
// them, whose commands are proposed at once. A waiter whose command claims nothing is parked again
// at its old place. If it claims fewer tasks than it was promised, the rest is promised to the next
// ones. So for each type with claimable tasks and waiters that can take them, either
//
//   - the tasks are promised to a waiter that is in the log or on its way there,
//   - or they are in ready,
//
// and no waiter is forgotten. Which tasks are claimable is never cached: the state is asked.
//
// Locks are taken in this order: the state's, mu, the batcher's.
type Waiters struct {
	cfg WaitersConfig

	mu       sync.Mutex // guards everything below, and the waiters
	ended    error      // why claims can no longer wait here, or nil
	count    int
	bytes    int64
	seq      uint64
	queues   map[string]*typeQueue
	requests map[string][]*waiter // by claim_request_id
	ready    []fsm.ReadyTasks     // to be promised; each type once
	promised map[string]int       // number of tasks by type, promised to waiters that are proposed
}

// typeQueue holds the waiters for a type, grouped by the attempts that a task must have left.
type typeQueue struct {
	classes []attemptsClass // ascending; mostly one, because few claims ask for attempts
}

type attemptsClass struct {
	more    int32                       // MoreAttempts of these claims
	waiting *btree.Map[uint64, *waiter] // by seq
}

// waiterState is the state of a waiter.
type waiterState uint8

const (
	waiterParked    waiterState = iota // in the queues
	waiterReserving                    // its goroutine is to reserve memory for the result, and then to propose it
	waiterProposed                     // its command is with the batcher
	waiterDone                         // result and err are set
)

// waiter is one waiting claim.
type waiter struct {
	set   *Waiters
	claim command.ClaimNext
	seq   uint64 // order of arrival

	// Guarded by set.mu.
	state waiterState
	// last is true once its time is over or its caller has left: it is not parked again.
	last bool
	// over is true if EndWaits ended its wait and it claimed nothing.
	over bool
	// promisedCount tasks of promisedType are promised to it.
	promisedType  string
	promisedCount int

	reserve reserver      // of memory for its result; nil if that is small
	free    func()        // frees what it has reserved; nil: nothing
	called  chan struct{} // capacity 1; receives when the state becomes waiterReserving

	pending pending       // its command; owned by the batcher while proposed
	done    chan struct{} // closed when result and err are set
	result  nodes.Proposed
	err     error
}

const (
	// WaiterBytes is the approximate memory of a waiting claim with a type or two.
	WaiterBytes = 1 << 10
	// waiterTypeBytes is the memory of each further type, because its queue may exist for one
	// claim alone.
	waiterTypeBytes = 512
)

// bytes estimates the memory of w while it waits.
func (w *waiter) bytes() int64 {
	n := int64(WaiterBytes)
	if len(w.claim.Types) > 2 {
		for _, t := range w.claim.Types {
			n += waiterTypeBytes + int64(len(t))
		}
	}
	return n
}

// NewWaiters returns the waiters of a leadership, initially none.
func NewWaiters(cfg WaitersConfig) *Waiters {
	return &Waiters{
		cfg:    cfg,
		queues: make(map[string]*typeQueue), requests: make(map[string][]*waiter), promised: make(map[string]int),
	}
}

// reserver waits until there is memory for the result of a claim, and reserves it.
type reserver = func(context.Context) (free func(), err error)

// Wait claims tasks for c, and waits until there are some, in order of arrival. Nothing is
// written while it waits. timedOut is true if it got nothing within wait, or before EndWaits. When
// caller ends, a waiting claim takes nothing, but a claim that is already in an entry is still
// answered. reserve, if not nil, reserves memory before the claim is proposed, which is freed if the
// claim goes on waiting after that. Errors: nodes.ErrOverloaded; the error passed to End; caller's
// cause if the claim was given up; those of the batcher and of
// reserve.
func (s *Waiters) Wait(caller context.Context, c command.ClaimNext, wait time.Duration, reserve reserver) (p nodes.Proposed, timedOut bool, err error) {
	w, err := s.admit(c, reserve)
	if err != nil {
		return nodes.Proposed{}, false, err
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for waits := true; waits; {
		select {
		case <-w.called:
			s.reserveAndPropose(caller, w)
			continue
		case <-w.done:
		case <-timer.C:
			if s.leave(w, false) {
				return nodes.Proposed{}, true, nil
			}
		case <-caller.Done():
			if s.leave(w, true) {
				return nodes.Proposed{}, false, context.Cause(caller)
			}
		}
		waits = false
	}
	<-w.done // the batcher answers within OutcomeTimeout
	return w.result, w.over, w.err
}

// reserveAndPropose reserves memory for the result of w, and then proposes its command.
func (s *Waiters) reserveAndPropose(caller context.Context, w *waiter) {
	free, err := w.reserve(caller)
	s.mu.Lock()
	w.free = free
	if err == nil {
		err = s.ended
	}
	if err != nil {
		s.unpromiseLocked(w, 0)
		w.err = err
		s.doneLocked(w)
	} else {
		s.enqueueLocked(w)
	}
	s.mu.Unlock()
	s.Wake() // for the tasks promised to w
}

// Len returns the number of waiting claims.
func (s *Waiters) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

// admit parks a claim, or proposes it if there is something for it that no earlier claim waits
// for. Errors: nodes.ErrOverloaded; the error passed to End.
func (s *Waiters) admit(c command.ClaimNext, reserve reserver) (w *waiter, err error) {
	w = &waiter{set: s, claim: c, reserve: reserve, called: make(chan struct{}, 1), done: make(chan struct{})}
	if err := s.enter(w); err != nil {
		return nil, err
	}
	w.pending.waiter = w
	w.pending.lane, w.pending.tasks = laneOf(c)
	w.pending.buf = command.AppendCommand(nil, c)
	// Under the read lock, so that no entry is applied between the check and the parking.
	s.cfg.Read(func(m *fsm.Machine) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if err = s.ended; err != nil {
			s.exitLocked(w)
			return
		}
		s.seq++
		w.seq = s.seq
		s.parkLocked(w)
		s.tryLocked(m, w)
	})
	return w, err
}

// enter counts w, before anything is allocated for it. Errors: those of admit.
func (s *Waiters) enter(w *waiter) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended != nil:
		return s.ended
	case s.count >= s.cfg.Max:
		return &nodes.Overload{Bound: nodes.BoundWaitingClaims, Text: fmt.Sprintf("%d claims wait (limits.waiting_claims)", s.cfg.Max)}
	case s.count > 0 && s.bytes+w.bytes() > s.cfg.MaxBytes:
		return &nodes.Overload{Bound: nodes.BoundWaitingClaims, Text: fmt.Sprintf("claims that wait take %d bytes, with the types that they list", s.bytes)}
	}
	s.count++
	s.bytes += w.bytes()
	return nil
}

// exitLocked undoes enter.
func (s *Waiters) exitLocked(w *waiter) {
	s.count--
	s.bytes -= w.bytes()
}

// leave ends the wait of w, and reports whether it has ended without a claim. Otherwise w is done,
// or will be with the outcome of its command. If gone, the caller needs no answer, so a command
// that is in no entry yet is withdrawn.
func (s *Waiters) leave(w *waiter, gone bool) bool {
	s.mu.Lock()
	left := false
	switch w.state {
	case waiterParked:
		s.unparkLocked(w)
		left = true
	case waiterReserving:
		s.unpromiseLocked(w, 0)
		left = true
	case waiterProposed:
		w.last = true
		left = gone && s.cfg.Batcher.withdraw(&w.pending)
		if left {
			s.unpromiseLocked(w, 0)
		}
	}
	if left {
		s.doneLocked(w)
		w.claim = command.ClaimNext{} // a withdrawn command keeps w in its lane for a while
	}
	s.mu.Unlock()
	s.Wake() // for the tasks promised to w
	return left
}

// End answers parked claims, and later ones, with err. The batcher answers those that are
// proposed, and reserveAndPropose those that are reserving.
func (s *Waiters) End(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended == nil {
		s.ended = err
	}
	for _, q := range s.queues {
		for _, class := range q.classes {
			// A claim may be in several queues; the first one answers it.
			for _, w := range class.waiting.Values() {
				if w.state == waiterParked {
					w.state, w.err = waiterDone, s.ended
					s.exitLocked(w)
					close(w.done)
				}
			}
		}
	}
	clear(s.queues)
	clear(s.requests)
	s.ready = nil
}

// NoteReady notes what an entry made claimable. It is called under the state's lock; Wake, or the
// delivery of the entry, then promises it.
func (s *Waiters) NoteReady(types []fsm.ReadyTasks) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count == 0 || s.ended != nil {
		return
	}
	for _, r := range types {
		s.readyLocked(r.Type, r.Count)
	}
}

// NoteOpened is NoteReady for types opened by time. It skips types with tasks promised to
// waiters, because those will show what the type has.
func (s *Waiters) NoteOpened(types []fsm.ReadyTasks) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count == 0 || s.ended != nil {
		return
	}
	for _, r := range types {
		if s.promised[r.Type] == 0 {
			s.readyLocked(r.Type, r.Count)
		}
	}
}

func (s *Waiters) readyLocked(taskType string, count int) {
	if count <= 0 {
		return
	}
	for i := range s.ready {
		if s.ready[i].Type == taskType {
			s.ready[i].Count += count
			return
		}
	}
	s.ready = append(s.ready, fsm.ReadyTasks{Type: taskType, Count: count})
}

// Wake promises the tasks that are ready, and proposes the waiters that get them.
func (s *Waiters) Wake() {
	s.mu.Lock()
	none := len(s.ready) == 0
	s.mu.Unlock()
	if none {
		return
	}
	s.cfg.Read(func(m *fsm.Machine) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.wakeLocked(m)
	})
}

func (s *Waiters) wakeLocked(m *fsm.Machine) {
	ready := s.ready
	s.ready = nil
	for _, r := range ready {
		s.promiseLocked(m, r.Type, r.Count)
	}
}

// deliver is called by the batcher with the outcome of an entry, before the next one is
// packed, so that waiters proposed now are in the next entry.
func (s *Waiters) deliver(e *entry) {
	s.mu.Lock()
	idle := s.count == 0
	s.mu.Unlock()
	if idle {
		return
	}
	s.cfg.Read(func(m *fsm.Machine) {
		s.mu.Lock()
		defer s.mu.Unlock()
		var empty []*waiter
		served := make(map[string]int)
		for i, p := range e.items {
			if p == nil || p.waiter == nil {
				continue
			}
			e.items[i] = nil // so that it is not delivered
			var result nodes.Proposed
			if e.err == nil {
				result = e.result(i)
			}
			if s.outcomeLocked(p.waiter, result, e.err, served) {
				empty = append(empty, p.waiter)
				if result.Release != nil {
					result.Release() // a waiter must not keep the memory of the whole entry's results
				}
			}
		}
		s.wakeLocked(m)
		s.wakeMoreLocked(m, served)
		for _, w := range empty {
			if w.state == waiterParked {
				s.tryLocked(m, w)
			}
		}
	})
}

// outcomeLocked handles the outcome of w's command: w is done or, if it claimed nothing, parked
// again. It adds to served the number of promised tasks that were claimed, by type.
func (s *Waiters) outcomeLocked(w *waiter, result nodes.Proposed, err error, served map[string]int) (again bool) {
	taken := 0
	for i := range result.Result.Claims {
		if !result.Result.Repeated && result.Result.Claims[i].Task.Type == w.promisedType {
			taken++
		}
	}
	if w.promisedCount > 0 {
		served[w.promisedType] += taken
	}
	s.unpromiseLocked(w, taken)
	found := err != nil || result.Result.Code != "" || len(result.Result.Claims) > 0
	if !found && !w.last && s.ended == nil {
		if w.free != nil {
			w.free()
			w.free = nil
		}
		s.parkLocked(w)
		return true
	}
	if !found && !w.last {
		err = s.ended
	}
	w.result, w.err = result, err
	s.doneLocked(w)
	if id := w.claim.RequestID; id != "" && err == nil {
		s.answeredLocked(id)
	}
	return false
}

// Answered is called when a claim with that request id was answered without waiting here.
func (s *Waiters) Answered(requestID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answeredLocked(requestID)
}

// answeredLocked proposes the waiters with the same request id, because their answer is known
// now.
func (s *Waiters) answeredLocked(requestID string) {
	for _, repeat := range slices.Clone(s.requests[requestID]) {
		s.proposeLocked(repeat)
	}
}

// EndWaits ends the waits of the parked claims with that request id. Proposed ones go on and
// may be parked again.
func (s *Waiters) EndWaits(requestID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range slices.Clone(s.requests[requestID]) {
		s.unparkLocked(w)
		w.over = true
		s.doneLocked(w)
	}
}

// unpromiseLocked ends the promise to w, which claimed that many of the tasks. The rest is ready
// again.
func (s *Waiters) unpromiseLocked(w *waiter, taken int) {
	if w.promisedCount == 0 {
		return
	}
	if s.promised[w.promisedType] -= w.promisedCount; s.promised[w.promisedType] == 0 {
		delete(s.promised, w.promisedType)
	}
	if s.ended == nil {
		s.readyLocked(w.promisedType, w.promisedCount-taken)
	}
	w.promisedCount = 0
}

// wakeMoreLocked promises more tasks of the types in served of which none is promised any more. A
// type with a limit may have more than an entry has reported; how many shows only when
// claims fail. So it promises twice as many as were claimed.
func (s *Waiters) wakeMoreLocked(m *fsm.Machine, served map[string]int) {
	types := make([]string, 0, len(served))
	for t := range served {
		types = append(types, t)
	}
	slices.Sort(types)
	for _, t := range types {
		if s.promised[t] == 0 {
			s.promiseLocked(m, t, max(1, 2*served[t]))
		}
	}
}

// tryLocked proposes the parked w if there is something for it that no earlier waiter can take.
func (s *Waiters) tryLocked(m *fsm.Machine, w *waiter) {
	if !s.cfg.Claimable(m, w.claim) {
		return
	}
	// A request that was answered before gets the same answer. No task has anyType, so this checks
	// only the request.
	if w.claim.RequestID != "" && s.cfg.Claimable(m, command.ClaimNext{Types: []string{anyType}, RequestID: w.claim.RequestID, Limit: 1}) {
		s.proposeLocked(w)
		return
	}
	if w.claim.Types == nil {
		if s.firstAnyLocked(w.claim.MoreAttempts) == w {
			s.proposeLocked(w)
		}
		return
	}
	for _, t := range w.claim.Types {
		if s.cfg.Claimable(m, ofType(t, w.claim.MoreAttempts)) && s.firstLocked(m, t) == w {
			s.proposeLocked(w)
			return
		}
	}
}

// ofType returns a claim of tasks of the type with more attempts left than more.
func ofType(taskType string, more int32) command.ClaimNext {
	return command.ClaimNext{Types: []string{taskType}, MoreAttempts: more, Limit: 1}
}

// firstLocked returns the first waiter that can take a claimable task of the type, or nil.
func (s *Waiters) firstLocked(m *fsm.Machine, taskType string) *waiter {
	if !s.cfg.Claimable(m, ofType(taskType, 0)) {
		return nil
	}
	var first *waiter
	for _, name := range [...]string{anyType, taskType} {
		q := s.queues[name]
		if q == nil {
			continue
		}
		for _, class := range q.classes {
			if class.more > 0 && !s.cfg.Claimable(m, ofType(taskType, class.more)) {
				break // claims that ask for more find none either
			}
			first = class.earlier(first)
		}
	}
	return first
}

// firstAnyLocked returns the first waiter for any type with a MoreAttempts up to more, or nil.
func (s *Waiters) firstAnyLocked(more int32) (first *waiter) {
	if q := s.queues[anyType]; q != nil {
		for _, class := range q.classes {
			if class.more > more {
				break
			}
			first = class.earlier(first)
		}
	}
	return first
}

// earlier returns the first waiter of the class, or other if that arrived before it.
func (c *attemptsClass) earlier(other *waiter) *waiter {
	if _, w, ok := c.waiting.Min(); ok && (other == nil || w.seq < other.seq) {
		return w
	}
	return other
}

// promiseLocked promises count tasks of the type to the first waiters that can take them, and
// proposes those.
func (s *Waiters) promiseLocked(m *fsm.Machine, taskType string, count int) {
	for count > 0 {
		w := s.firstLocked(m, taskType)
		if w == nil {
			return
		}
		w.promisedType, w.promisedCount = taskType, min(count, int(w.claim.Limit))
		count -= w.promisedCount
		s.promised[taskType] += w.promisedCount
		s.proposeLocked(w)
	}
}

// proposeLocked hands the command of the parked w to the batcher, once there is memory for its
// result.
func (s *Waiters) proposeLocked(w *waiter) {
	s.unparkLocked(w)
	s.cfg.Woken(1)
	if w.reserve == nil {
		s.enqueueLocked(w)
		return
	}
	w.state = waiterReserving
	w.called <- struct{}{}
}

// enqueueLocked hands the command of w to the batcher.
func (s *Waiters) enqueueLocked(w *waiter) {
	w.state = waiterProposed
	if err := s.cfg.Batcher.enqueueWaiting(&w.pending); err != nil {
		s.unpromiseLocked(w, w.promisedCount) // nothing can be promised any more
		w.err = err
		s.doneLocked(w)
	}
}

// drop is called when the batcher refuses the queued command of w.
func (s *Waiters) drop(w *waiter, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unpromiseLocked(w, w.promisedCount)
	w.err = err
	s.doneLocked(w)
}

func (s *Waiters) doneLocked(w *waiter) {
	w.state = waiterDone
	s.exitLocked(w)
	close(w.done)
}

// parkLocked queues w by its order of arrival.
func (s *Waiters) parkLocked(w *waiter) {
	w.state = waiterParked
	for _, t := range w.queueNames() {
		q := s.queues[t]
		if q == nil {
			q = &typeQueue{}
			s.queues[t] = q
		}
		at, ok := q.find(w.claim.MoreAttempts)
		if !ok {
			q.classes = slices.Insert(q.classes, at, attemptsClass{more: w.claim.MoreAttempts, waiting: &btree.Map[uint64, *waiter]{}})
		}
		q.classes[at].waiting.Set(w.seq, w)
	}
	if id := w.claim.RequestID; id != "" {
		s.requests[id] = append(s.requests[id], w)
	}
}

// unparkLocked undoes parkLocked.
func (s *Waiters) unparkLocked(w *waiter) {
	for _, t := range w.queueNames() {
		q := s.queues[t]
		at, _ := q.find(w.claim.MoreAttempts)
		q.classes[at].waiting.Delete(w.seq)
		if q.classes[at].waiting.Len() > 0 {
			continue
		}
		if q.classes = slices.Delete(q.classes, at, at+1); len(q.classes) == 0 {
			delete(s.queues, t)
		}
	}
	if id := w.claim.RequestID; id != "" {
		same := s.requests[id]
		if at := slices.Index(same, w); at >= 0 {
			same = slices.Delete(same, at, at+1)
		}
		if s.requests[id] = same; len(same) == 0 {
			delete(s.requests, id)
		}
	}
}

// queueNames returns the names of the queues in which w waits.
func (w *waiter) queueNames() []string {
	if w.claim.Types != nil {
		return w.claim.Types
	}
	return []string{anyType}
}

// find returns the index of the class in q and whether it exists.
func (q *typeQueue) find(more int32) (at int, ok bool) {
	return slices.BinarySearchFunc(q.classes, more, func(c attemptsClass, more int32) int { return int(c.more) - int(more) })
}
