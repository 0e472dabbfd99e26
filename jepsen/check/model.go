package check

import (
	"slices"

	"github.com/anishathalye/porcupine"

	"github.com/claimq/claimq/jepsen/history"
)

// The model of one task applies the contract's calls one at a time. Before any call, things that no
// call asks for may happen: a lease ends, a claim whose answer was lost takes the task, or a parent
// ends with its steps.

// Statuses of a task: those in answers, and two for a task before its submit and after its
// deletion.
const (
	statusNone      = "" // not submitted
	statusDeleted   = "deleted"
	statusPending   = "pending"
	statusClaimed   = "claimed"
	statusCompleted = "completed"
	statusFailed    = "failed"
	statusCancelled = "cancelled"
	statusBlocked   = "blocked" // a step
	statusRunning   = "running" // a parent that has not ended
)

// hasEnded reports whether the status is an end.
func hasEnded(status string) bool {
	return status == statusCompleted || status == statusFailed || status == statusCancelled
}

// expired and retried are ends of a claim without a call by its holder.
const (
	expired history.Kind = "expired"
	retried history.Kind = "retried"
)

// state is the state of the task in the model.
type state struct {
	status   string
	token    uint64 // highest seen, 0 = none yet
	attempts int32
	// unseen says that the holder of the claim never got its answer: its token is above token, and
	// no call can send it.
	unseen bool
	// untold says that the claim's answer was lost, though a read may have shown its token.
	untold bool
	cancel bool  // the claimed task becomes cancelled when its claim ends, unless by a complete
	hidden int32 // unseen claims so far

	// How the last claim that is over ended, and its token.
	lastKind  history.Kind
	lastToken uint64

	result string // if an answer or a call shows it
	// Of an ended parent: the processor that ended it, if an answer says so ("" if it ended by
	// itself).
	by   string
	told bool
}

// limits holds the facts about a task that its model needs.
type limits struct {
	maxAttempts  int32 // 0 = no limit
	unlimitedToo bool  // the limit is not certain, so both are possible
	hiddenMax    int32
	step         stepLimits
	parent, auto bool // it has steps; it ends by itself
	reopened     bool // a retry of a step makes the ended parent run again
}

// stepLimits says what may happen to a step at any time, without a call, because of its parent or
// other steps.
type stepLimits struct {
	is        bool
	depends   bool // it starts as blocked
	cancelled bool // with others
	retried   bool // with its parent
	deleted   bool // with its parent
}

// call is one op, or several combined into one.
type call struct {
	kind     history.Kind
	token    uint64
	outcome  history.Outcome
	code     string
	repeated bool
	attempts int32         // in a claim's answer, -1 if absent
	seen     *history.Task // in the answer of a read, or of the end of a parent
	worker   string        // the caller
	result   string        // in the call
	goal     string        // of a finalization
	op       int           // -1 = the final state
	// many says that the call acts on all existing tasks, or on those with the status only if that
	// is not "", and skips a task for which a single call would be refused.
	many bool
	only string
}

// model returns the model in porcupine's form.
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

// unasked returns s and every state that may follow from it without a call.
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
		return l.unaskedOfParent(s)
	}
	if l.step.is {
		return append(l.unaskedOfTask(s), l.unaskedOfStep(s)...)
	}
	return l.unaskedOfTask(s)
}

// unaskedOfParent returns the states of a parent that its steps may cause.
func (l limits) unaskedOfParent(s state) (next []state) {
	switch s.status {
	case statusCompleted, statusFailed:
		if l.reopened {
			s.status = statusRunning
			next = append(next, s)
		}
		return next
	case statusRunning:
	default:
		return nil
	}
	for _, to := range [...]string{statusCompleted, statusFailed, statusCancelled} {
		s.status, s.by, s.told, s.result = to, "", false, ""
		next = append(next, s)
	}
	return next
}

// unaskedOfStep returns the states of a step that its parent or other steps may cause.
func (l limits) unaskedOfStep(s state) (next []state) {
	to := func(p string) {
		after := s
		after.status = p
		next = append(next, after)
	}
	switch s.status {
	case statusBlocked, statusPending:
		if s.status == statusBlocked {
			to(statusPending)
		}
		if l.step.cancelled {
			to(statusCancelled)
		}
	case statusFailed, statusCancelled:
		if l.step.retried {
			to(statusPending)
			to(statusBlocked)
		}
	}
	if l.step.deleted && hasEnded(s.status) {
		to(statusDeleted)
	}
	return next
}

func (l limits) unaskedOfTask(s state) []state {
	switch {
	case s.status == statusClaimed:
		next := l.attemptOver(s, expired)
		if s.untold { // the leader may also give back a claim that it could not answer
			next = append(next, l.letGo(s, history.Release)...)
		}
		return next
	case s.status == statusPending && s.hidden < l.hiddenMax:
		s.status, s.unseen, s.untold = statusClaimed, true, true
		s.attempts++
		s.hidden++
		return []state{s}
	}
	return nil
}

// attemptOver returns the states of a claimed task after its attempt ended without success.
func (l limits) attemptOver(s state, how history.Kind) []state {
	if s.cancel {
		return []state{s.end(how, statusCancelled)}
	}
	next := s.end(how, statusPending)
	failed := s.end(how, statusFailed)
	var all []state
	switch {
	case l.maxAttempts == 0 || s.attempts < l.maxAttempts:
		all = []state{next}
	case l.unlimitedToo:
		all = []state{next, failed}
	default:
		all = []state{failed}
	}
	if l.step.cancelled { // its cancellation was requested
		all = append(all, s.end(how, statusCancelled))
	}
	return all
}

// end ends the current claim.
func (s state) end(how history.Kind, to string) state {
	s.status = to
	s.lastKind, s.lastToken = how, s.token
	if s.unseen {
		s.lastToken = 0
	}
	s.unseen, s.untold, s.cancel = false, false, false
	return s
}

// letGo ends the current claim without counting the attempt.
func (l limits) letGo(s state, how history.Kind) []state {
	s.attempts--
	if s.cancel {
		return []state{s.end(how, statusCancelled)}
	}
	if l.step.cancelled { // its cancellation was requested
		return []state{s.end(how, statusPending), s.end(how, statusCancelled)}
	}
	return []state{s.end(how, statusPending)}
}

// heldBy reports whether the claim with the token is live.
func (s state) heldBy(token uint64) bool {
	return s.status == statusClaimed && !s.unseen && s.token == token
}

// apply returns the states after c in s, none if c cannot have had its answer in s. A call of
// unknown outcome may also have done nothing.
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

// done returns the states after c took effect in s.
func (l limits) done(s state, c *call) []state {
	if c.many {
		return l.acted(s, c)
	}
	switch c.kind {
	case history.Submit:
		if s.status == statusNone {
			s.status = statusPending
			switch {
			case l.step.depends:
				s.status = statusBlocked
			case l.parent:
				s.status = statusRunning
			}
			return []state{s}
		}
	case history.Claim, history.ClaimTask:
		return s.claimed(c)
	case history.Complete, history.Fail, history.Release:
		return l.settled(s, c)
	case history.Extend, history.AddSteps:
		if s.heldBy(c.token) {
			return []state{s}
		}
	case history.Retry:
		return l.retried(s, c)
	case history.Cancel:
		return s.cancelled(c)
	case history.Delete:
		if hasEnded(s.status) {
			s.status = statusDeleted
			return []state{s}
		}
	case history.Finalize:
		return l.finalized(s, c)
	case history.Get:
		return l.shown(s, c.seen)
	}
	return nil
}

// finalized returns the states after a finalization. One that did nothing shows how the parent
// ended.
func (l limits) finalized(s state, c *call) []state {
	switch {
	case c.repeated && s.status == statusDeleted:
		return []state{s}
	case c.repeated:
		return l.shown(s, c.seen)
	case s.status != statusRunning || l.auto:
		return nil
	}
	s.status = c.goal
	s.by, s.told, s.result = c.worker, true, c.result
	if c.seen == nil { // its outcome is unknown
		return []state{s}
	}
	return l.shown(s, c.seen)
}

// retried returns the states after a retry. A parent's steps are retried with it.
func (l limits) retried(s state, c *call) []state {
	switch {
	case l.parent:
		if s.status == statusFailed || s.status == statusCancelled {
			s.status = statusRunning
		}
		if s.status == statusRunning {
			return []state{s}
		}
	case c.repeated:
		if s.status == statusPending || s.status == statusBlocked {
			return []state{s}
		}
	case s.status == statusFailed, s.status == statusCancelled:
		s.status = statusPending
		if l.step.depends {
			blocked := s
			blocked.status = statusBlocked
			return []state{s, blocked}
		}
		return []state{s}
	case s.status == statusClaimed && s.cancel:
		return []state{s.end(retried, statusCancelled)}
	case s.status == statusClaimed:
		after := []state{s.end(retried, statusPending)}
		if l.step.cancelled { // its cancellation was requested
			after = append(after, s.end(retried, statusCancelled))
		}
		return after
	}
	return nil
}

// acted returns the states of this task after an action on many tasks.
func (l limits) acted(s state, c *call) []state {
	if s.status == statusNone || c.only != statusNone && s.status != c.only {
		return []state{s}
	}
	alone := *c
	alone.many = false
	after := l.done(s, &alone)
	// The task may have no attempts left, or wait for its time. The model has it as pending then,
	// but the filter may not match it.
	if perhaps := c.kind == history.Retry && l.maxAttempts > 0 || c.only == statusPending; len(after) == 0 || perhaps {
		after = append(after, s)
	}
	return after
}

// cancelled returns the states after a cancel.
func (s state) cancelled(c *call) []state {
	switch {
	case c.repeated:
		if s.status == statusCancelled || s.status == statusClaimed && s.cancel {
			return []state{s}
		}
		return nil
	case s.status == statusRunning: // it ends once its claimed steps have ended
		return []state{s}
	case s.status == statusPending, s.status == statusBlocked:
		s.status = statusCancelled
	case s.status == statusClaimed && !s.cancel:
		s.cancel = true
	default:
		return nil
	}
	return []state{s}
}

// claimed returns the state after a claim.
func (s state) claimed(c *call) []state {
	if s.status != statusPending {
		return nil
	}
	s.status = statusClaimed
	s.attempts++
	if c.token == 0 { // the outcome is unknown, so no caller has the token
		s.unseen, s.untold = true, true
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
		return []state{s.end(c.kind, statusCompleted)}
	case history.Release:
		return l.letGo(s, c.kind)
	default:
		return l.attemptOver(s, c.kind)
	}
}

// shown returns the state with what seen adds to it, or none if seen contradicts it.
func (l limits) shown(s state, seen *history.Task) []state {
	p := seen.Status
	if p != s.status || seen.Attempts != s.attempts || seen.Result != "" && s.result != "" && seen.Result != s.result {
		return nil
	}
	if hasEnded(p) && seen.Result != "" {
		s.result = seen.Result
	}
	if l.parent {
		if hasEnded(p) && s.told && s.by != seen.Worker {
			return nil
		}
		s.by, s.told = seen.Worker, hasEnded(p)
		return []state{s}
	}
	switch {
	case p == statusClaimed && seen.ParentID == 0 && seen.Cancelling != s.cancel: // other steps may have requested the cancellation of a step
		return nil
	case p == statusPending, p == statusBlocked, p == statusCancelled && seen.Token == 0:
		// A pending task has no token.
	case s.unseen && seen.Token > s.token, (p == statusFailed || p == statusCancelled) && s.hidden > 0 && seen.Token >= s.token:
		s.token, s.unseen = seen.Token, false // the unseen claim is seen now
	case s.unseen:
		return nil
	case seen.Token != s.token:
		return nil
	}
	return []state{s}
}

// refusals maps the codes of refusals that say something about the task to the statuses in which
// they are right. Other refusals (no leader, overloaded, a malformed request, ...) only say that
// nothing was done.
var refusals = map[string][]string{
	"task_not_found":       {statusNone, statusDeleted},
	"task_completed":       {statusCompleted},
	"task_failed":          {statusFailed},
	"task_cancelled":       {statusCancelled},
	"task_not_terminal":    {statusPending, statusClaimed},
	"task_already_claimed": {statusClaimed},
	"task_not_claimed":     {statusPending, statusBlocked},
	codeStaleClaim:         {statusPending, statusBlocked, statusClaimed},
	codeWrongWorker:        {statusClaimed},
}

// Refusals that say that the task is claimed with another token.
const (
	codeStaleClaim  = "stale_claim"
	codeWrongWorker = "wrong_worker"
)

// refuses reports whether c can be refused with its code in s. The caller passes only refusals that
// say something about the task.
func (s state) refuses(c *call) bool {
	another := c.code == codeStaleClaim || c.code == codeWrongWorker
	return slices.Contains(refusals[c.code], s.status) && !(another && s.heldBy(c.token))
}

// saysOfTask reports whether a refusal's code says anything about the task's state.
func saysOfTask(code string) bool { return refusals[code] != nil }
