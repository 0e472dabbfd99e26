package fsm

import (
	"errors"
	"fmt"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/index"
	"github.com/claimq/claimq/fsm/record"
)

// Apply applies the entry of the log at index, in the order of its commands. Errors, wrapped:
// ErrUnknownCommand, ErrDevelopment and ErrCorrupt. Then the state may be half changed, and the
// caller must end the process because the state can no longer be trusted.
func (m *Machine) Apply(index uint64, entry []byte) (Applied, error) {
	stamp, count, rest, err := command.DecodeHeader(entry)
	if err != nil {
		return Applied{}, fmt.Errorf("entry %d: %w", index, err)
	}
	applied := m.beginEntry(index, stamp, count)
	commands := m.answers.commands
	err = command.Each(rest, count, commands, func(i int, c command.Command) error {
		err := m.applyAt(&applied, i, c)
		commands.Reset()
		return err
	})
	if err != nil {
		return Applied{}, fmt.Errorf("entry %d: %w", index, err)
	}
	m.endEntry(&applied)
	return applied, nil
}

// ApplyInto is Apply with reused memory, which saves much garbage. The result is valid
// until the next call with the same memory.
func (m *Machine) ApplyInto(memory Answers, index uint64, entry []byte) (Applied, error) {
	kept, a := m.answers, memory.memory
	a.reset()
	a.commands = kept.commands
	m.answers, m.begun, m.ended = a, a.leases, a.ended
	defer func() { m.answers = kept }()
	applied, err := m.Apply(index, entry)
	a.leases, a.ended = applied.Leases[:0], applied.Ended[:0]
	return applied, err
}

// Replay is ApplyInto for callers that need no results, such as followers: their tasks are
// the state's own, and change with it. The rest is valid until the next Replay.
func (m *Machine) Replay(index uint64, entry []byte) (Applied, error) {
	if m.reused == nil {
		m.reused = newAnswers(slabReused, slabSpares)
		m.reused.unread = true
	}
	return m.ApplyInto(Answers{m.reused}, index, entry)
}

// beginEntry begins an entry of count commands.
func (m *Machine) beginEntry(index uint64, stamp record.Stamp, count int) Applied {
	// The clocks move before the first command and never go back, because a new leader's
	// calendar may be behind the old one's.
	m.header.Index = index
	m.header.Stamp.U = max(m.header.Stamp.U, stamp.U)
	m.header.Stamp.T = max(m.header.Stamp.T, stamp.T)
	passMinutes(m)
	m.types.OpenDue(&m.turns, m.header.Stamp.T)
	dropFullBuckets(m)
	m.types.retired.forget(m.header.Stamp.T)
	m.told = 0
	return Applied{Index: index, Stamp: m.header.Stamp, Results: m.answers.results.take(count)}
}

// applyAt applies the command at index i of the entry.
func (m *Machine) applyAt(applied *Applied, i int, c command.Command) error {
	row := command.RowOf(c)
	if m.partial != nil && !row.Restore {
		m.partial = nil
	}
	m.dice = index.Dice{Index: m.header.Index, Place: i}
	result, err := m.do(c)
	if err != nil {
		return err
	}
	if row.Steps {
		result = withSteps(m, result)
	}
	removeLeaving(m)
	applied.Results[i] = result
	return nil
}

// endEntry ends the entry and moves its effects into applied.
func (m *Machine) endEntry(applied *Applied) {
	applied.Stamp = m.header.Stamp
	applied.Leases, m.begun = m.begun, nil
	applied.Requeued, m.requeued = m.requeued, 0
	applied.Removed, m.removed = m.removed, 0
	applied.Tally, m.tally = m.tally, Tally{}
	applied.Ready = m.types.TakeNoted()
	applied.Ended, m.ended = m.ended, nil
	applied.Events = m.told > 0
	applied.Checkpoint, m.checkpoint = m.checkpoint, false
	applied.Restored, m.restored = m.restored, false
	m.trail.Trim(m.header.Stamp.T)
}

// do applies one command. Errors: those of batch.
func (m *Machine) do(c command.Command) (Result, error) {
	switch c := c.(type) {
	case *command.Submit: // these four are decoded into the memory of a command.Scratch
		return submit(m, c.Tasks), nil
	case *command.ClaimNext:
		return claimNext(m, c), nil
	case *command.Complete:
		return complete(m, c), nil
	case *command.PackedBatch:
		return batch(m, &c.Batch, c)
	case command.Submit:
		return submit(m, c.Tasks), nil
	case command.ClaimNext:
		return claimNext(m, &c), nil
	case command.ClaimTask:
		return claimTask(m, c), nil
	case command.Complete:
		return complete(m, &c), nil
	case command.Fail:
		return fail(m, c), nil
	case command.Extend:
		return extend(m, c), nil
	case command.Release:
		return release(m, c), nil
	case command.Retry:
		return retry(m, c), nil
	case command.Delete:
		return deleteTask(m, c), nil
	case command.Cancel:
		return cancel(m, c), nil
	case command.Patch:
		return patch(m, c), nil
	case command.Expire:
		return expire(m, c), nil
	case command.Batch:
		return batch(m, &c, c)
	case command.Tick:
		return tick(m), nil
	}
	return m.doRarely(c), nil
}

// doRarely applies the less frequent commands.
func (m *Machine) doRarely(c command.Command) Result {
	switch c := c.(type) {
	case command.Act:
		return act(m, c)
	case command.Signal:
		return signal(m, c)
	case command.AddSteps:
		return addSteps(m, c)
	case command.MoveTasks:
		return moveTasks(m, c)
	case command.SetType:
		return setType(m, c)
	case command.SetShare:
		return setShare(m, c)
	case command.Evict:
		return evict(m, c)
	case command.Forget:
		return forgetOldest(m, c)
	case command.ClaimFinalization:
		return claimFinalization(m, c)
	case command.ExtendFinalization:
		return extendFinalization(m, c)
	case command.ReleaseFinalization:
		return releaseFinalization(m, c)
	case command.Finalize:
		return finalize(m, c)
	case command.SetSchedule:
		return setSchedule(m, c)
	case command.DeleteSchedule:
		return deleteSchedule(m, c)
	case command.RunSchedules:
		return runSchedules(m, c)
	}
	return m.operate(c)
}

// operate applies the commands that change the cluster's own records.
func (m *Machine) operate(c command.Command) Result {
	switch c := c.(type) {
	case command.Checkpoint:
		m.checkpoint = true
	case command.SetNode:
		return setNode(m, c)
	case command.RemoveNode:
		return removeNode(m, c)
	case command.SetLevel:
		return setLevel(m, c)
	case command.SetTrail:
		return setTrail(m, c)
	case command.Tell:
		return tellOperator(m, c)
	case command.SetDefaults:
		return setDefaults(m, c)
	case command.SetPageSecret:
		return setPageSecret(m, c)
	case command.SetJoinToken:
		return setJoinToken(m, c)
	case command.DeleteJoinToken:
		return deleteJoinToken(m, c)
	case command.UseJoinToken:
		return useJoinToken(m, c)
	case command.RestoreBegin:
		return beginRestore(m, c)
	case command.RestoreChunk:
		return takeChunk(m, c)
	case command.RestoreEnd:
		return endRestore(m, c)
	default:
		panic(fmt.Sprintf("fsm: no rule for %T", c)) // a table row without a rule; a test finds it
	}
	return Result{}
}

// batchOps has the ops of a batch: a command.Batch or a command.PackedBatch.
type batchOps interface {
	Len() int
	Each(do func(i int, op command.Command) error) error
}

// errOpRefused ends an atomic batch.
var errOpRefused = errors.New("an op was refused")

// batch applies the ops in order. An atomic batch changes nothing if one of its ops is
// refused. Errors: those of undoAll, and of ops that cannot be decoded.
func batch(m *Machine, c *command.Batch, ops batchOps) (Result, error) {
	if c.Atomic {
		beginUndo(m)
	}
	results, start := m.answers.results.take(ops.Len()), m.changed
	var refusal Result
	m.request = c.RequestID
	err := ops.Each(func(i int, op command.Command) (err error) {
		m.place = uint32(i)
		results[i] = applyOp(m, op, start)
		if c.Atomic {
			if r, refused := refusalOf(op, results[i]); refused {
				refusal, err = r, errOpRefused
				refusal.FailedOp = i
			}
		}
		return err
	})
	m.answered, m.request, m.place = 0, "", 0
	switch {
	case errors.Is(err, errOpRefused):
		return refusal, undoAll(m)
	case err != nil:
		return Result{}, err
	case c.Atomic:
		keepAll(m)
	}
	return Result{Results: results}, nil
}

// applyOp applies one op of a batch. The batch bounds its answer as a whole: once it is
// full, claims take nothing more and other tasks come without their data. It also bounds
// the changes; start is Machine.changed at the beginning of the batch.
func applyOp(m *Machine, op command.Command, start int) Result {
	if m.changed-start+m.ReachOf(op) > changesMax {
		return Result{Code: CodeInvalidRequest, Reason: ReasonReach}
	}
	result, _ := m.do(op) // only a batch returns an error, and a batch is no op
	if result.Task != nil {
		result.Task = shown(m, result.Task)
	}
	switch op.(type) {
	case command.Submit, *command.Submit: // answers show only the ids of follow-ups
		for i := range result.Submitted {
			result.Submitted[i].Task = shown(m, result.Submitted[i].Task)
		}
	}
	for i := range result.Claims {
		m.answered += record.AnswerBytes(result.Claims[i].Task)
	}
	return result
}

// shown is shownIn for the answer of the current batch.
func shown(m *Machine, t *record.Task) *record.Task { return shownIn(&m.answered, t) }

// ReachOf returns how many tasks an op or a batch may change. A batch is the sum of its
// ops, and a task counts as often as an op names it. Every other command counts as 1. This
// bounds the changes of a batch and of an entry.
func (m *Machine) ReachOf(c command.Command) int {
	switch c := c.(type) { // short cuts for most ops
	case *command.Submit:
		return record.CountTasks(c.Tasks)
	case *command.ClaimNext:
		return int(c.Limit)
	case *command.Complete:
		if len(c.Submit) == 0 && c.Claim == nil {
			return m.Reach(c.ID)
		}
	case command.Complete:
		if len(c.Submit) == 0 && c.Claim == nil {
			return m.Reach(c.ID)
		}
	}
	row, about := command.RowOf(c), command.AboutOf(c)
	switch {
	case about.Ops != nil:
		n := 0
		for _, op := range about.Ops {
			n += m.ReachOf(op)
		}
		return n
	case row.Family:
		return about.Changes - 1 + m.Reach(about.ID)
	case !row.Op:
		return 1
	}
	return about.Changes
}
