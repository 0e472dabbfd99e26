package fsm

import (
	"fmt"

	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/wire"
)

// Batch applies Ops in order, in one step; if Atomic, all of them or none. Ops
// are Submit of one task, ClaimNext, Complete, Fail, Extend, Release, Retry,
// Cancel and Delete. Result.Results has one element per op; of an atomic batch
// that was refused, Result.Code and FailedOp say why. A claim that finds nothing
// is such a refusal. All ops share the bound of one answer: a claim that finds
// it full takes nothing, and other tasks come without their data.
type Batch struct {
	Atomic bool
	Ops    []Command // 1 to 1,000
}

func (Batch) kind() kind { return kindBatch }

func (c Batch) about() About {
	about := About{Known: true, Ops: c.Ops}
	for _, op := range c.Ops {
		about.Changes += op.about().Changes
	}
	return about
}

func (c Batch) needs() (level uint32) {
	for _, op := range c.Ops {
		level = max(level, LevelOf(op))
	}
	return level
}

func (c Batch) applyTo(m *Machine) (Result, error) { return m.batch(c) }

// isOp reports whether a batch may hold c: a Submit only of one task.
func isOp(c Command) bool {
	if s, ok := c.(Submit); ok {
		return len(s.Tasks) == 1
	}
	return c.kind().isOp()
}

// batch applies the ops in order. An atomic one whose op is refused changes
// nothing. Errors: as undoAll's.
func (m *Machine) batch(c Batch) (Result, error) {
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

func (m *Machine) atomicBatch(ops []Command) (Result, error) {
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
func refusalOf(op Command, result Result) (refusal Result, refused bool) {
	if _, claims := op.(ClaimNext); claims && result.Code == "" && len(result.Claims) == 0 {
		return Result{Code: CodeNoPendingTasks}, true
	}
	return Result{Code: result.Code, Reason: result.Reason, Task: result.Task, Gone: result.Gone}, result.Code != ""
}

// applyOp applies an op of a batch. The answer to the batch is bounded as a
// whole: when it is full, claims take nothing more, and other tasks come bare.
// So is what it changes, which began when Machine.changed was start.
func (m *Machine) applyOp(op Command, start int) Result {
	if m.header.Level >= record.LevelSteps && m.changed-start+m.ReachOf(op) > changesMax {
		return Result{Code: CodeInvalidRequest, Reason: ReasonReach}
	}
	result, _ := op.applyTo(m) // but for a batch, which is no op, none errs
	if result.Task != nil {
		result.Task = m.shown(result.Task)
	}
	if _, ok := op.(Submit); ok { // of follow-ups, answers show the ids alone
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

// appendBody writes an op as its kind and its body. It must be one that a
// batch may hold: another would make an entry that no node can read.
func (c Batch) appendBody(b []byte) []byte {
	b = wire.PutBool(b, 1, c.Atomic)
	for _, op := range c.Ops {
		if !isOp(op) {
			panic(fmt.Sprintf("fsm: %T is no op of a batch", op))
		}
		var start int
		b, start = wire.BeginMessage(b, 2)
		b = append(b, byte(op.kind()))
		b = wire.EndLength(op.appendBody(b), start)
	}
	return b
}

func (Batch) decode(r fieldReader) (Command, error) {
	var c Batch
	for r.Next() {
		switch r.Num {
		case 1:
			c.Atomic = r.Bool()
		case 2:
			if c.Ops == nil {
				c.Ops = make([]Command, 0, r.Run())
			}
			op, err := decodeOp(r.Raw())
			r.Within(err)
			c.Ops = append(c.Ops, op)
		default:
			r.Unknown()
		}
	}
	return c, r.Err
}

// decodeOp decodes one op of a batch: its kind, then its body. A batch holds
// no batch, so no command is deeper than an op's own messages.
func decodeOp(b []byte) (Command, error) {
	if len(b) == 0 {
		return nil, fmt.Errorf("%w: an op without a kind", ErrCorrupt)
	}
	k := kind(b[0])
	if !k.isOp() {
		return nil, fmt.Errorf("%w: %s in a batch", ErrUnknownCommand, k)
	}
	c, err := decodeBody(k, b[1:], nil)
	switch {
	case err != nil:
		return nil, err
	case !isOp(c):
		return nil, fmt.Errorf("%w: %s of not one task in a batch", ErrCorrupt, k)
	}
	return c, nil
}
