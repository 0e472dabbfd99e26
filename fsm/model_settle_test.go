package fsm

import (
	"fmt"
	"math/big"
	"slices"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// lastClaimEnded returns the last attempt of the task that has ended.
func lastClaimEnded(t *record.Task) record.Attempt {
	var last record.Attempt
	for _, a := range t.Claims() {
		if a.EndedAt != 0 {
			last = a
		}
	}
	return last
}

// endWasOfClaim tells whether the task ended with a claim. Otherwise it was unclaimed when
// it was cancelled or expired.
func endWasOfClaim(t *record.Task) bool {
	if t.Status == record.StatusCancelled {
		return t.CancelRequested
	}
	return t.Status >= record.StatusCompleted && t.WorkerID != ""
}

// settle is the contract's "order of checks", sentence by sentence.
func (s *model) settle(h command.Hold, how record.Outcome, do func(*record.Task)) Result {
	t, gone := s.find(h.ID), false
	if t == nil { // the task exists, or it was removed after it had ended
		t, gone = s.findGone(h.ID), true
	}
	if t == nil {
		return Result{Code: CodeTaskNotFound}
	}
	answer := func(r Result) Result {
		if r.Task, r.Gone = s.answer(t), gone; gone {
			r.Task = goneAnswer(t)
		}
		return r
	}
	// A task remembers how its last claim ended.
	last := lastClaimEnded(t)
	byToken := h.Token != 0 && h.Token == last.Token
	byWorker := h.Token == 0 && endWasOfClaim(t) && h.WorkerID == last.WorkerID
	if how != record.OutcomeNone && how == last.Outcome && (byToken || byWorker) {
		again := answer(Result{Repeated: true})
		if how == record.OutcomeCompleted && t.Then != nil {
			s.toldAgain(t.Then.Claims)
			again.Submitted, again.Claims = s.submittedAgain(t.Then.Submitted), s.claimsAgain(t.Then.Claims)
		}
		return again
	}
	switch {
	case t.Status >= record.StatusCompleted: // it has not ended
		return answer(Result{Code: s.endedCode(t)})
	case t.Status != record.StatusClaimed && h.Token != 0: // it is claimed
		return answer(Result{Code: CodeStaleClaim})
	case t.Status != record.StatusClaimed:
		return answer(Result{Code: CodeTaskNotClaimed})
	case t.WorkerID != h.WorkerID: // by this worker
		return answer(Result{Code: CodeWrongWorker})
	case h.Token != 0 && t.Token != h.Token: // with this token
		return answer(Result{Code: CodeStaleClaim})
	}
	was := s.answer(t)
	do(t)
	if t.Status != record.StatusClaimed {
		s.tellEnd(was, t)
		s.follow(t)
	}
	return Result{Task: s.answer(t)}
}

// toldAgain counts a second answer that tells of the claims; more of them change nothing.
func (s *model) toldAgain(refs []record.ClaimRef) {
	for _, c := range refs {
		if t := s.find(c.TaskID); s.lives(c) && t.LeaseSeq == 1 {
			t.LeaseSeq = 2
		}
	}
}

// submittedAgain is a repeated answer: the current tasks,
// or the ids of removed ones.
func (s *model) submittedAgain(first []record.FollowUp) []Submitted {
	var all []Submitted
	for _, f := range first {
		again := Submitted{Task: &record.Task{ID: f.ID}, Created: f.Created, Replaced: f.Replaced}
		if t := s.find(f.ID); t != nil {
			again.Task = s.answer(t)
		}
		all = append(all, again)
	}
	return all
}

func (s *model) complete(c command.Complete, seen *Result) Result {
	ended := false
	var refused []Submitted
	if c.Late {
		defer s.claimAgain(c.Hold)()
	}
	r := s.settle(c.Hold, record.OutcomeCompleted, func(t *record.Task) {
		if c.Claim != nil && s.otherRequest(*c.Claim) {
			return
		}
		if refused = s.followUpsRefused(c); refused != nil {
			return
		}
		t.Result, t.ResultPayload = c.Result, c.ResultPayload
		s.endClaim(t, record.StatusCompleted, record.OutcomeCompleted, "")
		ended = true
	})
	if !ended {
		if refused != nil {
			return Result{Code: CodeInvalidTask, Submitted: refused}
		}
		if r.Code == "" && !r.Repeated {
			return Result{Code: CodeInvalidRequest}
		}
		return r
	}
	t := s.find(c.ID)
	s.leaveIfNotKept(t)
	r.Task = s.answer(t)
	r.Submitted = s.submit(c.Submit)
	if c.Claim != nil {
		next := s.claimNext(*c.Claim, seen)
		r.Claims, r.ClaimsRepeated = next.Claims, next.Repeated
	}
	if len(c.Submit) > 0 || len(r.Claims) > 0 {
		t.Then = &record.Then{}
		for _, x := range r.Submitted {
			t.Then.Submitted = append(t.Then.Submitted, record.FollowUp{ID: x.Task.ID, Created: x.Created, Replaced: x.Replaced})
		}
		for _, x := range r.Claims {
			t.Then.Claims = append(t.Then.Claims, record.ClaimRef{TaskID: x.Task.ID, Token: x.Token})
		}
	}
	return r
}

// claimAgain makes a task claimed again that waits since the claim h, its last one, has expired or failed. The function
// that it returns undoes that, unless the claim has ended again.
func (s *model) claimAgain(h command.Hold) (undo func()) {
	t := s.find(h.ID)
	if t == nil || h.Token == 0 || len(t.Log) == 0 || t.Status != record.StatusPending && t.Status != record.StatusScheduled {
		return func() {}
	}
	last := &t.Log[len(t.Log)-1]
	if last.Token != h.Token || last.WorkerID != h.WorkerID || last.Outcome != record.OutcomeExpired && last.Outcome != record.OutcomeFailed {
		return func() {}
	}
	status, log := t.Status, t.Log
	t.Status, t.WorkerID, t.Token, t.Log = record.StatusClaimed, h.WorkerID, h.Token, slices.Clone(log[:len(log)-1])
	return func() {
		if t.Status == record.StatusClaimed {
			t.Status, t.WorkerID, t.Token, t.Log = status, "", 0, log
		}
	}
}

// followUpsRefused are the outcomes of the follow-ups if one is refused, else nil.
func (s *model) followUpsRefused(c command.Complete) []Submitted {
	all, refused := make([]Submitted, len(c.Submit)), false
	for i, n := range c.Submit {
		all[i].Task = &record.Task{}
		if step, never := s.never(n, c.ID); never {
			all[i].Refused, all[i].Step, refused = true, step, true
		}
	}
	if !refused {
		return nil
	}
	return all
}

func (s *model) fail(c command.Fail, seen *Result) Result {
	r := s.settling(c.Hold, record.OutcomeFailed, func(t *record.Task) {
		t.Error = c.Error
		switch {
		case t.CancelRequested:
			s.endClaim(t, record.StatusCancelled, record.OutcomeFailed, c.Error)
		case c.Permanent || !s.mayTryAgain(t):
			s.endClaim(t, record.StatusFailed, record.OutcomeFailed, c.Error)
		case c.RetryIn:
			s.endClaim(t, record.StatusPending, record.OutcomeFailed, c.Error)
			s.waitUntil(t, s.t+c.RetryInMS)
		default:
			s.endClaim(t, record.StatusPending, record.OutcomeFailed, c.Error)
			s.backOff(t, seen.Task)
		}
	})
	if t := s.find(c.ID); r.Code == "" && !r.Repeated {
		s.bury(t)
		r.Task = s.answer(t)
	}
	return r
}

// bury submits the dead letter of a task that has failed, if its type has another type for these. A step has none.
func (s *model) bury(t *record.Task) {
	to := s.settings(t.Type).DeadLetter
	if t.Status != record.StatusFailed || to == "" || t.Opts().Step != nil {
		return
	}
	c := s.copyOf(t, to, "dead letter of task ")
	options := *c.Opts()
	options.Origin = &record.Source{Type: t.Type, ID: t.ID}
	setPlainly(c, options)
}

// copyOf submits a copy of a task that has ended to another type.
func (s *model) copyOf(t *record.Task, to, message string) *record.Task {
	o := t.Opts()
	expires := int64(0)
	if o.ExpiresAgain && o.ExpiresAt != 0 {
		expires = s.t + o.ExpiresAt - t.CreatedAt
	}
	s.submitter = fmt.Sprint(message, t.ID)
	id := s.submitOne(record.NewTask{
		ExpiresAt: expires, ExpiresAgain: expires != 0,
		Type: to, Params: t.Params, Payload: t.Payload, Priority: t.Priority, MaxAttempts: record.DefaultAttempts, AtOnce: true,
		Labels: o.Labels, Group: o.Group, Traceparent: o.Traceparent, ShareKey: o.ShareKey, Attributes: o.Attributes,
	}).Task.ID
	s.submitter = ""
	t.Then = &record.Then{Submitted: []record.FollowUp{{ID: id, Created: true}}}
	c := s.find(id)
	if o.Signalled {
		kept := *c.Opts()
		kept.SignalMS, kept.Signalled, kept.Signal = o.SignalMS, true, o.Signal
		setPlainly(c, kept)
	}
	return c
}

func (s *model) release(c command.Release) Result {
	t := s.find(c.ID)
	mine := t != nil && t.Status == record.StatusClaimed && t.WorkerID == c.WorkerID && (c.Token == 0 || c.Token == t.Token)
	if mine && c.Answer != 0 && t.LeaseSeq != c.Answer { // there was another answer since
		return s.refuse(CodeStaleClaim, t)
	}
	return s.settling(c.Hold, record.OutcomeReleased, func(t *record.Task) {
		t.Attempts--
		if t.CancelRequested {
			s.endClaim(t, record.StatusCancelled, record.OutcomeReleased, "")
			return
		}
		s.endClaim(t, record.StatusPending, record.OutcomeReleased, "")
		s.waitUntil(t, s.t+c.DelayMS)
	})
}

// settling is settle of what may end the task.
func (s *model) settling(h command.Hold, how record.Outcome, do func(*record.Task)) Result {
	return s.settle(h, how, func(t *record.Task) {
		do(t)
		s.leaveIfNotKept(t)
	})
}

func (s *model) expire(c command.Expire) Result {
	var r Result
	for _, l := range c.Items {
		t := s.find(l.TaskID)
		if t == nil || t.Status != record.StatusClaimed || t.Token != l.Token || t.LeaseSeq != l.Seq {
			continue
		}
		r.Expired++
		was := s.answer(t)
		switch {
		case t.CancelRequested:
			s.endClaim(t, record.StatusCancelled, record.OutcomeExpired, "")
		case !s.mayTryAgain(t):
			t.Error = "lease expired"
			s.endClaim(t, record.StatusFailed, record.OutcomeExpired, "")
		default:
			s.endClaim(t, record.StatusPending, record.OutcomeExpired, "")
			s.backOff(t, s.after(t.ID))
		}
		s.tellEnd(was, t)
		s.leaveIfNotKept(t)
		s.follow(t)
		s.bury(t)
	}
	return r
}

func (s *model) mayTryAgain(t *record.Task) bool {
	if x := s.settings(t.Type); t.Opts().Step == nil && x.DeadLetterAfter > 0 && t.Attempts >= x.DeadLetterAfter {
		return false
	}
	return t.MaxAttempts == 0 || t.Attempts < t.MaxAttempts
}

// endClaim ends the claim of a claimed task.
func (s *model) endClaim(t *record.Task, to record.Status, how record.Outcome, why string) {
	if to != record.StatusCompleted {
		t.Log = append(t.Log, record.Attempt{WorkerID: t.WorkerID, Token: t.Token, ClaimedAt: t.ClaimedAt, EndedAt: s.t, Outcome: how, Error: why})
	}
	if len(t.Log) > 20 {
		t.Log = t.Log[1:]
	}
	t.LeaseSeq, t.ClaimLeaseMS, t.LeaseEndU, t.UpdatedAt, t.Status = 0, 0, 0, s.t, to
	if to == record.StatusPending {
		t.WorkerID, t.Token = "", 0
		s.requeued++
	} else {
		s.ended(t)
	}
}

// backOff lets the task wait as long as its backoff says. seen is the
// machine's task, which tells what jitter took off.
func (s *model) backOff(t, seen *record.Task) {
	b := t.Opts().Backoff
	if b == nil {
		b = s.inForce(t.Type).Backoff
	}
	if b == nil {
		return
	}
	longest := backoffMS(b, t.Attempts)
	shortest := longest - ceilDiv(longest, b.Jitter)
	if b.Jitter == 0 || seen == nil {
		s.waitUntil(t, s.t+longest)
		return
	}
	delay := seen.RunAt - s.t
	switch seen.Status {
	case record.StatusScheduled:
	case record.StatusCancelled: // since, with its parent: it may have waited, or not
		if delay < 0 || delay > longest {
			delay = 0
		}
	default:
		delay = 0
	}
	if delay < shortest || delay > longest {
		s.fault("task %d waits for %d ms after attempt %d, with %+v: want %d to %d", t.ID, delay, t.Attempts, *b, shortest, longest)
	}
	s.waitUntil(t, s.t+delay)
}

// backoffMS is min(max, initial * factor^(attempts-1)) to the millisecond
// below, in exact fractions.
func backoffMS(b *record.Backoff, attempts int32) int64 {
	most := new(big.Rat).SetInt64(b.MaxMS)
	delay := new(big.Rat).SetInt64(b.InitialMS)
	factor := big.NewRat(b.Factor, 1_000_000)
	for range attempts - 1 {
		if delay.Cmp(most) >= 0 || b.Factor == 1_000_000 {
			break
		}
		delay.Mul(delay, factor)
	}
	if delay.Cmp(most) > 0 {
		delay = most
	}
	return new(big.Int).Quo(delay.Num(), delay.Denom()).Int64()
}

// ceilDiv is the share of ms in millionths, rounded up.
func ceilDiv(ms, millionths int64) int64 {
	n := new(big.Int).Mul(big.NewInt(ms), big.NewInt(millionths))
	n.Add(n, big.NewInt(999_999))
	return n.Quo(n, big.NewInt(1_000_000)).Int64()
}

func (s *model) retry(c command.Retry) Result {
	t := s.find(c.ID)
	// again tells whether such a retry ended the claim that this one names.
	again := func(t *record.Task) bool {
		last := lastClaimEnded(t)
		still := last.Outcome == record.OutcomeRetried && t.Status == record.StatusClaimed ||
			last.Outcome == record.OutcomeCancelled && (t.Status == record.StatusClaimed || t.Status == record.StatusCancelled)
		return c.Token != 0 && c.Token == last.Token && still
	}
	if gone := s.findGone(c.ID); t == nil && gone != nil && again(gone) {
		return Result{Repeated: true, Gone: true, Task: goneAnswer(gone)}
	}
	switch {
	case t == nil:
		return Result{Code: CodeTaskNotFound}
	case t.Status == record.StatusCompleted:
		return s.refuse(CodeTaskCompleted, t)
	case t.Opts().Parent != nil:
		return s.retryParent(t, c)
	case t.Status == record.StatusPending, t.Status == record.StatusBlocked, again(t):
		return Result{Repeated: true, Task: s.answer(t)}
	case t.Status == record.StatusScheduled:
		t.Status, t.UpdatedAt = record.StatusPending, s.t
		s.tell(event.Retried, t, nil, "")
		return Result{Repeated: true, Task: s.answer(t)}
	}
	if refusal := s.cannotRetryStep(t); refusal.Code != "" {
		return refusal
	}
	if c.Token != 0 && t.Token != c.Token {
		return s.refuse(CodeStaleClaim, t)
	}
	if t.Status == record.StatusClaimed && t.CancelRequested {
		was := s.answer(t)
		s.endClaim(t, record.StatusCancelled, record.OutcomeCancelled, "")
		s.tellEnd(was, t)
		s.leaveIfNotKept(t)
		s.follow(t)
		return Result{Task: s.answer(t)}
	}
	if t.Status > record.StatusCompleted && t.Then != nil {
		r := s.refuse(s.endedCode(t), t)
		r.Reason = ReasonMovedOn
		return r
	}
	most := t.MaxAttempts
	if most != 0 {
		most += c.AddAttempts
		if t.Attempts >= most {
			return s.refuse(CodeMaxAttemptsReached, t)
		}
	}
	if t.Status >= record.StatusCompleted && t.Opts().UniqueActive {
		if refusal := s.keyTaken(t); refusal.Code != "" {
			return refusal
		}
	}
	if step := t.Opts().Step; step != nil {
		s.runAgain(s.find(step.ParentID))
	}
	t.MaxAttempts = most
	if t.Status == record.StatusClaimed {
		was := s.answer(t)
		s.endClaim(t, record.StatusPending, record.OutcomeRetried, "")
		s.tellEnd(was, t)
		return Result{Task: s.answer(t)}
	}
	s.revive(t, record.StatusPending)
	return Result{Task: s.answer(t)}
}

// keyTaken returns the refusal of a retry if the task has lost its key and another task has
// it now, or had it until it was removed and is remembered.
func (s *model) keyTaken(t *record.Task) Result {
	if other := s.holder(t.Type, t.Key, t.Opts().KeyOfType); other != nil {
		return s.refuse(CodeKeyTaken, other)
	}
	if other := s.formerHolder(t.Type, t.Key, t.Opts().KeyOfType); other != nil {
		return Result{Code: CodeKeyTaken, Gone: true, Task: goneAnswer(other)}
	}
	return Result{}
}

// revive lets an ended task live again. A step may have to wait for others.
func (s *model) revive(t *record.Task, to record.Status) {
	t.Status, t.WorkerID, t.Token, t.CompletedAt, t.RemoveAt, t.UpdatedAt = to, "", 0, 0, 0, s.t
	t.CancelRequested = false
	switch {
	case len(s.waitsFor(t)) > 0:
		t.Status = record.StatusBlocked
	case s.lacksSignal(t):
		s.awaitSignal(t)
	case to == record.StatusPending:
		s.requeued++
	}
	if o := *t.Opts(); s.mayExpire(t) && o.ExpiresAt <= s.t { // else it would end again at once
		o.ExpiresAt = 0
		setPlainly(t, o)
	}
	t.Result, t.ResultPayload = nil, nil
	s.tell(event.Retried, t, nil, "")
}

func (s *model) cancel(id uint64) Result {
	t := s.find(id)
	switch {
	case t == nil:
		return s.cancelGone(id)
	case t.Status == record.StatusCancelled:
		return Result{Repeated: true, Task: s.answer(t)}
	case t.Status >= record.StatusCompleted:
		return s.refuse(s.endedCode(t), t)
	case t.Opts().Parent != nil:
		return s.cancelParent(t)
	case t.Status == record.StatusClaimed && t.CancelRequested:
		return Result{Repeated: true, Task: s.answer(t)}
	}
	s.cancelOrAsk(t)
	s.leaveIfNotKept(t)
	s.follow(t)
	return Result{Task: s.answer(t)}
}

// cancelGone is cancel of a task that is not there: a repeat, if it was removed
// after it had been cancelled.
func (s *model) cancelGone(id uint64) Result {
	t := s.findGone(id)
	if t == nil {
		return Result{Code: CodeTaskNotFound}
	}
	if t.Status == record.StatusCancelled {
		return Result{Repeated: true, Gone: true, Task: goneAnswer(t)}
	}
	return Result{Code: s.endedCode(t), Gone: true, Task: goneAnswer(t)}
}

// lacksSignal says whether the task needs a signal that has not come.
func (s *model) lacksSignal(t *record.Task) bool { return t.Opts().SignalMS > 0 && !t.Opts().Signalled }

// awaitSignal lets the task wait for its signal from now on.
func (s *model) awaitSignal(t *record.Task) {
	t.Status = record.StatusBlocked
	s.setSignalUntil(t, s.t+t.Opts().SignalMS)
}

func (s *model) setSignalUntil(t *record.Task, until int64) {
	o := *t.Opts()
	o.SignalUntil = until
	setPlainly(t, o)
}

// signal hands the task its signal, unless it has one or has ended.
func (s *model) signal(c command.Signal) Result {
	t := s.find(c.ID)
	switch {
	case t == nil:
		if gone := s.findGone(c.ID); gone != nil {
			return Result{Code: s.endedCode(gone), Gone: true, Task: goneAnswer(gone)}
		}
		return Result{Code: CodeTaskNotFound}
	case t.Opts().SignalMS == 0:
		r := s.refuse(CodeTaskNotClaimable, t)
		r.Reason = "no_signal"
		return r
	case t.Opts().Signalled:
		return Result{Repeated: true, Task: s.answer(t)}
	case t.Status >= record.StatusCompleted:
		return s.refuse(s.endedCode(t), t)
	}
	o := *t.Opts()
	o.Signalled, o.Signal, o.SignalUntil = true, c.Body, 0
	setPlainly(t, o)
	t.UpdatedAt = s.t
	if len(s.waitsFor(t)) == 0 {
		s.askedFor(t, t.RunAt)
	}
	s.tell(event.Signalled, t, nil, by("", c.By))
	if t.Status == record.StatusScheduled {
		s.tellWait(t, nil)
	}
	return Result{Task: s.answer(t)}
}

func (s *model) patch(c command.Patch) Result {
	t := s.find(c.ID)
	switch {
	case t == nil:
		return Result{Code: CodeTaskNotFound}
	case t.Status >= record.StatusCompleted:
		return s.refuse(s.endedCode(t), t)
	case t.Status == record.StatusClaimed:
		return s.refuse(CodeTaskAlreadyClaimed, t)
	case t.Status == record.StatusRunning && (c.SetRunAt || c.SetShareKey):
		r := s.refuse(CodeTaskNotClaimable, t)
		r.Reason = "running"
		return r
	}
	t.UpdatedAt = s.t
	if c.SetPriority {
		t.Priority = c.Priority
	}
	switch {
	case c.SetRunAt && t.Status == record.StatusBlocked:
		t.RunAt = c.RunAt
	case c.SetRunAt:
		s.askedFor(t, c.RunAt)
		if t.Status == record.StatusScheduled {
			s.tellWait(t, nil)
		}
	}
	if c.SetLabels {
		options := *t.Opts()
		options.Labels = c.Labels
		setPlainly(t, options)
	}
	if c.SetShareKey {
		options := *t.Opts()
		options.ShareKey = c.ShareKey
		setPlainly(t, options)
	}
	return Result{Task: s.answer(t)}
}

func (s *model) delete(id uint64) Result {
	t := s.find(id)
	switch {
	case t == nil:
		return Result{Code: CodeTaskNotFound}
	case t.Opts().Step != nil:
		r := s.refuse(CodeTaskNotTerminal, t)
		r.Reason = "step"
		return r
	case t.Status < record.StatusCompleted:
		return s.refuse(CodeTaskNotTerminal, t)
	}
	for _, gone := range append([]*record.Task{t}, s.stepsOf(t)...) {
		s.remove(gone)
		s.endedNow = append(s.endedNow, gone.ID)
		s.tell(event.Deleted, gone, nil, "")
	}
	return Result{Task: s.answer(t)}
}

// setPlainly gives the task its rarer fields, none if all are at their defaults.
func setPlainly(t *record.Task, o record.Options) {
	t.Options = nil
	if !cmp.Equal(o, record.Options{}, cmpopts.EquateEmpty()) {
		t.Options = &o
	}
}

func (s *model) remove(gone *record.Task) {
	s.tasks = slices.DeleteFunc(s.tasks, func(t *record.Task) bool { return t == gone })
}
