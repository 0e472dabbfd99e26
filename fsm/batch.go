package fsm

import (
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// batch applies the ops in order. An atomic one whose op is refused changes
// nothing. Errors: as undoAll's.
func (m *Machine) batch(c command.Batch) (Result, error) {
	if c.Atomic {
		return m.atomicBatch(c.Ops)
	}
	results, start := m.answers.results.take(len(c.Ops)), m.changed
	for i, op := range c.Ops {
		results[i] = m.applyOp(op, start)
	}
	m.answered = 0
	return Result{Results: results}, nil
}

func (m *Machine) atomicBatch(ops []command.Command) (Result, error) {
	m.beginUndo()
	defer func() { m.answered = 0 }()
	results, start := m.answers.results.take(len(ops)), m.changed
	for i, op := range ops {
		results[i] = m.applyOp(op, start)
		if refusal, refused := refusalOf(op, results[i]); refused {
			refusal.FailedOp = i
			return refusal, m.undoAll()
		}
	}
	m.keepAll()
	return Result{Results: results}, nil
}

// refusalOf returns the refusal that the result of an op of an atomic batch
// stands for: that of the op, or that it claimed nothing.
func refusalOf(op command.Command, result Result) (refusal Result, refused bool) {
	if _, claims := op.(command.ClaimNext); claims && result.Code == "" && len(result.Claims) == 0 {
		return Result{Code: CodeNoPendingTasks}, true
	}
	return Result{Code: result.Code, Reason: result.Reason, Task: result.Task, Gone: result.Gone, Submitted: result.Submitted}, result.Code != ""
}

// applyOp applies an op of a batch. The answer to the batch is bounded as a
// whole: when it is full, claims take nothing more, and other tasks come bare.
// So is what it changes, which began when Machine.changed was start.
func (m *Machine) applyOp(op command.Command, start int) Result {
	if m.Level() >= record.LevelSteps && m.changed-start+m.ReachOf(op) > changesMax {
		return Result{Code: CodeInvalidRequest, Reason: ReasonReach}
	}
	result, _ := m.do(op) // but for a batch, which is no op, none errs
	if result.Task != nil {
		result.Task = m.shown(result.Task)
	}
	if _, ok := op.(command.Submit); ok { // of follow-ups, answers show the ids alone
		for i := range result.Submitted {
			result.Submitted[i].Task = m.shown(result.Submitted[i].Task)
		}
	}
	for i := range result.Claims {
		m.answered += record.AnswerBytes(&result.Claims[i].Task)
	}
	return result
}

// shown counts the task as part of the answer. It returns a bare copy if the
// answer is full.
func (m *effects) shown(t *record.Task) *record.Task { return shownIn(&m.answered, t) }

// shownIn is shown of an answer that holds so much already.
func shownIn(answered *int, t *record.Task) *record.Task {
	*answered += record.AnswerBytes(t)
	if *answered <= answerBytesMax {
		return t
	}
	short := *t
	short.Bare()
	return &short
}

// ReachOf returns how many tasks a command may change, of those that a batch may
// hold and of a batch, which is the sum of its ops: each as often as an op names it.
// Of any other it is 1. What a batch and an entry change is bounded by it.
func (m *Machine) ReachOf(c command.Command) int {
	if c, ok := c.(command.Complete); ok && len(c.Submit) == 0 && c.Claim == nil {
		return m.Reach(c.ID) // as below, at once: most ops are this
	}
	row, about := command.RowOf(c), command.AboutOf(c)
	switch {
	case about.Ops != nil:
		n := 0
		for _, op := range about.Ops {
			n += m.ReachOf(op)
		}
		return n
	case !row.Op:
		return 1
	case row.Family:
		return about.Changes - 1 + m.Reach(about.ID)
	}
	return about.Changes
}
