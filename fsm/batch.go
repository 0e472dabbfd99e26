package fsm

import (
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// batch applies the ops in order. An atomic batch changes nothing if one of its ops is
// refused. Errors: those of undoAll.
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

// refusalOf returns the refusal of an op of an atomic batch. A claim that finds nothing
// counts as refused.
func refusalOf(op command.Command, result Result) (refusal Result, refused bool) {
	if _, claims := op.(command.ClaimNext); claims && result.Code == "" && len(result.Claims) == 0 {
		return Result{Code: CodeNoPendingTasks}, true
	}
	return Result{Code: result.Code, Reason: result.Reason, Task: result.Task, Gone: result.Gone, Submitted: result.Submitted}, result.Code != ""
}

// applyOp applies one op of a batch. The batch bounds its answer as a whole: once it is
// full, claims take nothing more and other tasks come without their data. It also bounds
// the changes; start is Machine.changed at the beginning of the batch.
func (m *Machine) applyOp(op command.Command, start int) Result {
	if m.Level() >= record.LevelSteps && m.changed-start+m.ReachOf(op) > changesMax {
		return Result{Code: CodeInvalidRequest, Reason: ReasonReach}
	}
	result, _ := m.do(op) // only a batch returns an error, and a batch is no op
	if result.Task != nil {
		result.Task = m.shown(result.Task)
	}
	if _, ok := op.(command.Submit); ok { // answers show only the ids of follow-ups
		for i := range result.Submitted {
			result.Submitted[i].Task = m.shown(result.Submitted[i].Task)
		}
	}
	for i := range result.Claims {
		m.answered += record.AnswerBytes(&result.Claims[i].Task)
	}
	return result
}

// shown adds the task to the answer's size. It returns a bare copy if the answer is full.
func (m *effects) shown(t *record.Task) *record.Task { return shownIn(&m.answered, t) }

// shownIn is shown for an answer whose size is *answered.
func shownIn(answered *int, t *record.Task) *record.Task {
	*answered += record.AnswerBytes(t)
	if *answered <= answerBytesMax {
		return t
	}
	short := *t
	short.Bare()
	return &short
}

// ReachOf returns how many tasks an op or a batch may change. A batch is the sum of its
// ops, and a task counts as often as an op names it. Every other command counts as 1. This
// bounds the changes of a batch and of an entry.
func (m *Machine) ReachOf(c command.Command) int {
	if c, ok := c.(command.Complete); ok && len(c.Submit) == 0 && c.Claim == nil {
		return m.Reach(c.ID) // short cut for most ops
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
