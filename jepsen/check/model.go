package check

import (
	"slices"

	"github.com/anishathalye/porcupine"

	"github.com/claimq/claimq/jepsen/history"
)

// The model of one task: what the contract says its calls do, one at a time.
// What no call asks for may happen before any call: a lease ends, a claim
// whose answer nobody got takes the task, and a parent ends with its steps.

// phase is where a task is.
type phase uint8

const (
	phaseNone phase = iota // not submitted
	phasePending
	phaseClaimed
	phaseCompleted
	phaseFailed
	phaseDeleted
	phaseBlocked // a step
	phaseCancelled
	phaseRunning // a parent that has not ended
)

// phases are what statuses mean. No other status can be in what the checked calls do.
var phases = map[string]phase{
	statusPending: phasePending, statusClaimed: phaseClaimed, statusCompleted: phaseCompleted, statusFailed: phaseFailed,
	statusBlocked: phaseBlocked, statusCancelled: phaseCancelled, statusRunning: phaseRunning,
}

// Statuses that answers show.
const (
	statusPending   = "pending"
	statusClaimed   = "claimed"
	statusCompleted = "completed"
	statusFailed    = "failed"
	statusCancelled = "cancelled"
	statusBlocked   = "blocked"
	statusRunning   = "running"
)

// hasEnded reports whether the status is an end.
func hasEnded(status string) bool {
	return status == statusCompleted || status == statusFailed || status == statusCancelled
}

// over reports whether the task is there and has ended.
func (p phase) over() bool { return p == phaseCompleted || p == phaseFailed || p == phaseCancelled }

// expired and retried are how a claim ends without a call by its holder.
const (
	expired history.Kind = "expired"
	retried history.Kind = "retried"
)

// state is what the model knows of a task.
type state struct {
	phase    phase
	token    uint64 // highest seen, 0 = none yet
	attempts int32
	// unseen says that whoever holds the claim never got its answer: the token
	// is higher than token, and no call can carry it.
	unseen bool
	cancel bool  // the claimed task is to be cancelled when its claim ends without a complete
	hidden int32 // claims of that kind so far

	// How the last claim that is over ended, and its token.
	lastKind  history.Kind
	lastToken uint64

	result string // as far as an answer or a call said
	// Of a parent that has ended: who ended it ("" = it ended by itself), if told.
	by   string
	told bool
}

// limits are what a task's model needs to know of its history.
type limits struct {
	maxAttempts  int32 // 0 = no limit
	unlimitedToo bool  // the limit is not certain: both are possible
	hiddenMax    int32
	step         stepLimits
	parent, auto bool // it has steps; it ends by itself
}

// stepLimits are what may happen to a step because of its parent or of other
// steps, at any time: no call names it.
type stepLimits struct {
	is        bool
	depends   bool // it begins as blocked
	cancelled bool // with others
	retried   bool // with its parent
	deleted   bool // with its parent
}

// call is one op, or several folded into one, as the model sees it.
type call struct {
	kind     history.Kind
	token    uint64
	outcome  history.Outcome
	code     string
	repeated bool
	attempts int32         // answered by a claim, -1 = not said
	seen     *history.Task // of a read, or of how a parent ended
	worker   string        // who asks
	result   string        // sent
	goal     string        // of a finalize
	op       int           // -1 = the final state
	// many says that the call acts on all tasks that are there, those in phase only if
	// that is not phaseNone, and leaves alone what its own kind would refuse.
	many bool
	only phase
}

// model returns porcupine's form of the model.
func (l limits) model() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{state{}} },
		Step: func(s, in, _ any) []any {
			var next []any
			for _, before := range l.unasked(s.(state)) {
				for _, after := range l.apply(before, in.(*call)) {
					if !slices.Contains(next, any(after)) {
						next = append(next, after)
					}
				}
			}
			return next
		},
	}
	return m.ToModel()
}

// unasked returns s and all that may become of it without a call.
func (l limits) unasked(s state) []state {
	all := []state{s}
	for i := 0; i < len(all); i++ {
		for _, next := range l.unaskedOnce(all[i]) {
			if !slices.Contains(all, next) {
				all = append(all, next)
			}
		}
	}
	return all
}

func (l limits) unaskedOnce(s state) []state {
	if l.parent {
		return unaskedOfParent(s)
	}
	if l.step.is {
		return append(l.unaskedOfTask(s), l.unaskedOfStep(s)...)
	}
	return l.unaskedOfTask(s)
}

// unaskedOfParent returns what steps may make of their parent.
func unaskedOfParent(s state) (next []state) {
	if s.phase != phaseRunning {
		return nil
	}
	for _, to := range [...]phase{phaseCompleted, phaseFailed, phaseCancelled} {
		s.phase, s.by, s.told, s.result = to, "", false, ""
		next = append(next, s)
	}
	return next
}

// unaskedOfStep returns what others may make of a step.
func (l limits) unaskedOfStep(s state) (next []state) {
	to := func(p phase) {
		after := s
		after.phase = p
		next = append(next, after)
	}
	switch s.phase {
	case phaseBlocked, phasePending:
		if s.phase == phaseBlocked {
			to(phasePending)
		}
		if l.step.cancelled {
			to(phaseCancelled)
		}
	case phaseFailed, phaseCancelled:
		if l.step.retried {
			to(phasePending)
			to(phaseBlocked)
		}
	}
	if l.step.deleted && s.phase.over() {
		to(phaseDeleted)
	}
	return next
}

func (l limits) unaskedOfTask(s state) []state {
	switch {
	case s.phase == phaseClaimed:
		next := l.attemptOver(s, expired)
		if s.unseen { // the leader may also give back what it could not answer
			next = append(next, l.letGo(s, history.Release)...)
		}
		return next
	case s.phase == phasePending && s.hidden < l.hiddenMax:
		s.phase, s.unseen = phaseClaimed, true
		s.attempts++
		s.hidden++
		return []state{s}
	}
	return nil
}

// attemptOver returns the status of a claimed task whose attempt ended
// without success.
func (l limits) attemptOver(s state, how history.Kind) []state {
	if s.cancel {
		return []state{s.end(how, phaseCancelled)}
	}
	next := s.end(how, phasePending)
	failed := s.end(how, phaseFailed)
	var all []state
	switch {
	case l.maxAttempts == 0 || s.attempts < l.maxAttempts:
		all = []state{next}
	case l.unlimitedToo:
		all = []state{next, failed}
	default:
		all = []state{failed}
	}
	if l.step.cancelled { // its cancel had been asked for
		all = append(all, s.end(how, phaseCancelled))
	}
	return all
}

// end ends the current claim.
func (s state) end(how history.Kind, to phase) state {
	s.phase = to
	s.lastKind, s.lastToken = how, s.token
	if s.unseen {
		s.lastToken = 0
	}
	s.unseen, s.cancel = false, false
	return s
}

// letGo ends the current claim as one that was not counted.
func (l limits) letGo(s state, how history.Kind) []state {
	s.attempts--
	if s.cancel {
		return []state{s.end(how, phaseCancelled)}
	}
	if l.step.cancelled { // its cancel had been asked for
		return []state{s.end(how, phasePending), s.end(how, phaseCancelled)}
	}
	return []state{s.end(how, phasePending)}
}

// heldBy reports whether the claim with the token is live.
func (s state) heldBy(token uint64) bool {
	return s.phase == phaseClaimed && !s.unseen && s.token == token
}

// apply returns the states that c may lead to from s, none if c cannot have
// been answered so in s. A call of unknown outcome may also have done nothing.
func (l limits) apply(s state, c *call) []state {
	switch c.outcome {
	case history.OK:
		return l.done(s, c)
	case history.Unknown:
		asked := *c
		asked.outcome, asked.repeated = history.OK, false
		return append(l.done(s, &asked), s)
	default:
		if s.refuses(c) {
			return []state{s}
		}
		return nil
	}
}

// done returns the states that c leads to when it is done in s.
func (l limits) done(s state, c *call) []state {
	if c.many {
		return l.acted(s, c)
	}
	switch c.kind {
	case history.Submit:
		if s.phase == phaseNone {
			s.phase = phasePending
			switch {
			case l.step.depends:
				s.phase = phaseBlocked
			case l.parent:
				s.phase = phaseRunning
			}
			return []state{s}
		}
	case history.Claim, history.ClaimTask:
		return s.claimed(c)
	case history.Complete, history.Fail, history.Release:
		return l.settled(s, c)
	case history.Extend:
		if s.heldBy(c.token) {
			return []state{s}
		}
	case history.Retry:
		return l.retried(s, c)
	case history.Cancel:
		return s.cancelled(c)
	case history.Delete:
		if s.phase.over() {
			s.phase = phaseDeleted
			return []state{s}
		}
	case history.Finalize:
		return l.finalized(s, c)
	case history.Get:
		return l.shown(s, c.seen)
	}
	return nil
}

// finalized returns the states after a finalize. One that did nothing tells of the end.
func (l limits) finalized(s state, c *call) []state {
	switch {
	case c.repeated && s.phase == phaseDeleted:
		return []state{s}
	case c.repeated:
		return l.shown(s, c.seen)
	case s.phase != phaseRunning || l.auto:
		return nil
	}
	s.phase = phases[c.goal]
	s.by, s.told, s.result = c.worker, true, c.result
	if c.seen == nil { // of unknown outcome
		return []state{s}
	}
	return l.shown(s, c.seen)
}

// retried returns the states after a retry. A parent's steps are retried with it.
func (l limits) retried(s state, c *call) []state {
	switch {
	case l.parent:
		if s.phase == phaseFailed || s.phase == phaseCancelled {
			s.phase = phaseRunning
		}
		if s.phase == phaseRunning {
			return []state{s}
		}
	case c.repeated:
		if s.phase == phasePending || s.phase == phaseBlocked {
			return []state{s}
		}
	case s.phase == phaseFailed, s.phase == phaseCancelled:
		s.phase = phasePending
		if l.step.depends {
			blocked := s
			blocked.phase = phaseBlocked
			return []state{s, blocked}
		}
		return []state{s}
	case s.phase == phaseClaimed && s.cancel:
		return []state{s.end(retried, phaseCancelled)}
	case s.phase == phaseClaimed:
		after := []state{s.end(retried, phasePending)}
		if l.step.cancelled { // its cancel had been asked for
			after = append(after, s.end(retried, phaseCancelled))
		}
		return after
	}
	return nil
}

// acted returns the states after an action on many, of which the task is one.
func (l limits) acted(s state, c *call) []state {
	if s.phase == phaseNone || c.only != phaseNone && s.phase != c.only {
		return []state{s}
	}
	alone := *c
	alone.many = false
	after := l.done(s, &alone)
	// It has no attempts left, perhaps, or waits for its time: then it is shown as pending
	// here, and is not for a filter.
	if perhaps := c.kind == history.Retry && l.maxAttempts > 0 || c.only == phasePending; len(after) == 0 || perhaps {
		after = append(after, s)
	}
	return after
}

// cancelled returns the states after a cancel.
func (s state) cancelled(c *call) []state {
	switch {
	case c.repeated:
		if s.phase == phaseCancelled || s.phase == phaseClaimed && s.cancel {
			return []state{s}
		}
		return nil
	case s.phase == phaseRunning: // it is over when its claimed steps are
		return []state{s}
	case s.phase == phasePending, s.phase == phaseBlocked:
		s.phase = phaseCancelled
	case s.phase == phaseClaimed && !s.cancel:
		s.cancel = true
	default:
		return nil
	}
	return []state{s}
}

// claimed returns the state after a claim.
func (s state) claimed(c *call) []state {
	if s.phase != phasePending {
		return nil
	}
	s.phase = phaseClaimed
	s.attempts++
	if c.token == 0 { // of unknown outcome: nobody was told the token
		s.unseen = true
		return []state{s}
	}
	if c.token <= s.token || c.attempts >= 0 && c.attempts != s.attempts {
		return nil
	}
	s.token = c.token
	return []state{s}
}

// settled returns the states after a complete, fail or release.
func (l limits) settled(s state, c *call) []state {
	if c.repeated {
		if s.lastKind == c.kind && s.lastToken == c.token {
			return []state{s}
		}
		return nil
	}
	if !s.heldBy(c.token) {
		return nil
	}
	switch c.kind {
	case history.Complete:
		s.result = c.result
		return []state{s.end(c.kind, phaseCompleted)}
	case history.Release:
		return l.letGo(s, c.kind)
	default:
		return l.attemptOver(s, c.kind)
	}
}

// shown returns the state if it can be shown so, with what is learnt of it.
func (l limits) shown(s state, seen *history.Task) []state {
	p, ok := phases[seen.Status]
	if !ok || p != s.phase || seen.Attempts != s.attempts || seen.Result != "" && s.result != "" && seen.Result != s.result {
		return nil
	}
	if p.over() && seen.Result != "" {
		s.result = seen.Result
	}
	if l.parent {
		if p.over() && s.told && s.by != seen.Worker {
			return nil
		}
		s.by, s.told = seen.Worker, p.over()
		return []state{s}
	}
	switch {
	case p == phaseClaimed && seen.ParentID == 0 && seen.Cancelling != s.cancel: // others may ask for that of a step
		return nil
	case p == phasePending, p == phaseBlocked, p == phaseCancelled && seen.Token == 0:
		// A pending task has no token.
	case s.unseen && seen.Token > s.token, (p == phaseFailed || p == phaseCancelled) && s.hidden > 0 && seen.Token >= s.token:
		s.token, s.unseen = seen.Token, false // an unseen claim is seen after all
	case s.unseen:
		return nil
	case seen.Token != s.token:
		return nil
	}
	return []state{s}
}

// refuses reports whether c can be refused in s with its code. Refusals that
// say nothing of the task never get here.
func (s state) refuses(c *call) bool {
	switch c.code {
	case "task_not_found":
		return s.phase == phaseNone || s.phase == phaseDeleted
	case "task_completed":
		return s.phase == phaseCompleted
	case "task_failed":
		return s.phase == phaseFailed
	case "task_not_terminal":
		return s.phase == phasePending || s.phase == phaseClaimed
	case "task_cancelled":
		return s.phase == phaseCancelled
	case "task_already_claimed":
		return s.phase == phaseClaimed
	case "task_not_claimed":
		return s.phase == phasePending || s.phase == phaseBlocked
	case "stale_claim":
		return s.phase == phasePending || s.phase == phaseBlocked || s.phase == phaseClaimed && !s.heldBy(c.token)
	case "wrong_worker":
		return s.phase == phaseClaimed && !s.heldBy(c.token)
	}
	return true
}

// saysOfTask reports whether a refusal's code says anything about the task's
// state. The others (no leader, overloaded, a malformed request, ...) say only
// that nothing was done.
func saysOfTask(code string) bool {
	switch code {
	case "task_not_found", "task_completed", "task_failed", "task_cancelled", "task_not_terminal",
		"task_already_claimed", "task_not_claimed", "stale_claim", "wrong_worker":
		return true
	}
	return false
}
