package fsm

import (
	"fmt"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// Apply applies the entry of the log at index, in the order of its commands.
// Errors: ErrUnknownCommand and ErrCorrupt, wrapped; then the state may be
// half changed and the caller must end the process.
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

// ApplyInto is Apply, but what it returns is good until the next call with the
// same memory: it is used again. That saves much garbage.
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

// Replay is ApplyInto where nobody waits for the results, as on followers: what it
// returns is good until the next Replay.
func (m *Machine) Replay(index uint64, entry []byte) (Applied, error) {
	if m.reused == nil {
		m.reused = newAnswers(slabReused, slabSpares)
	}
	return m.ApplyInto(Answers{m.reused}, index, entry)
}

// apply is Apply of a decoded entry.
func (m *Machine) apply(index uint64, stamp record.Stamp, commands []command.Command) (Applied, error) {
	applied := m.beginEntry(index, stamp, len(commands))
	for i, c := range commands {
		if err := m.applyAt(&applied, i, c); err != nil {
			return Applied{}, fmt.Errorf("command %d: %w", i, err)
		}
	}
	m.endEntry(&applied)
	return applied, nil
}

// beginEntry begins an entry of count commands.
func (m *Machine) beginEntry(index uint64, stamp record.Stamp, count int) Applied {
	// The clocks move before the first command, and never back: a new leader's
	// calendar may be behind the old one's.
	m.header.Index = index
	m.header.Stamp.U = max(m.header.Stamp.U, stamp.U)
	m.header.Stamp.T = max(m.header.Stamp.T, stamp.T)
	m.openDue()
	m.told = 0
	return Applied{Index: index, Stamp: m.header.Stamp, Results: m.answers.results.take(count)}
}

// applyAt applies the entry's command at place i.
func (m *Machine) applyAt(applied *Applied, i int, c command.Command) error {
	row := command.RowOf(c)
	if m.partial != nil && !row.Restore {
		m.partial = nil
	}
	m.command, m.picks = i, 0
	result, err := m.do(c)
	if err != nil {
		return err
	}
	if row.Steps {
		result = m.withSteps(result)
	}
	m.removeLeaving()
	applied.Results[i] = result
	return nil
}

// endEntry ends the entry and says what it did.
func (m *Machine) endEntry(applied *Applied) {
	applied.Stamp = m.header.Stamp
	applied.Leases, m.begun = m.begun, nil
	applied.Requeued, m.requeued = m.requeued, 0
	applied.Removed, m.removed = m.removed, 0
	applied.Tally, m.tally = m.tally, Tally{}
	applied.Ready, m.noted, m.notedGone = m.noted, nil, nil
	applied.Ended, m.ended = m.ended, nil
	applied.Events = m.told > 0
	applied.Checkpoint, m.checkpoint = m.checkpoint, false
	applied.Restored, m.restored = m.restored, false
	m.trail.Trim(m.header.Stamp.T)
}

// do applies a command by the rule for it. Errors: as undoAll's.
func (m *Machine) do(c command.Command) (Result, error) {
	switch c := c.(type) {
	case *command.Submit: // these three are decoded into memory that is used again
		return m.submit(*c), nil
	case *command.ClaimNext:
		return m.claimNext(*c), nil
	case *command.Complete:
		return m.complete(*c), nil
	case command.Submit:
		return m.submit(c), nil
	case command.ClaimNext:
		return m.claimNext(c), nil
	case command.ClaimTask:
		return m.claimTask(c), nil
	case command.Complete:
		return m.complete(c), nil
	case command.Fail:
		return m.fail(c), nil
	case command.Extend:
		return m.extend(c), nil
	case command.Release:
		return m.release(c), nil
	case command.Expire:
		return m.expire(c), nil
	case command.Batch:
		return m.batch(c)
	case command.Tick:
		return m.tick(), nil
	}
	return m.doRarely(c), nil
}

// doRarely is do of what tasks live without, most of the time.
func (m *Machine) doRarely(c command.Command) Result {
	switch c := c.(type) {
	case command.Retry:
		return m.retry(c)
	case command.Delete:
		return m.delete(c)
	case command.Cancel:
		return m.cancel(c)
	case command.Patch:
		return m.patch(c)
	case command.Act:
		return m.act(c)
	case command.SetType:
		return m.setType(c)
	case command.Evict:
		return m.evict(c)
	case command.Forget:
		return m.forgetOldest(c)
	case command.ClaimFinalization:
		return m.claimFinalization(c)
	case command.ExtendFinalization:
		return m.extendFinalization(c)
	case command.ReleaseFinalization:
		return m.releaseFinalization(c)
	case command.Finalize:
		return m.finalize(c)
	case command.SetSchedule:
		return m.setSchedule(c)
	case command.DeleteSchedule:
		return m.deleteSchedule(c)
	case command.RunSchedules:
		return m.runSchedules(c)
	}
	return m.operate(c)
}

// operate is do of what changes the cluster's own records.
func (m *Machine) operate(c command.Command) Result {
	switch c := c.(type) {
	case command.Checkpoint:
		m.checkpoint = true
	case command.SetNode:
		return m.setNode(c)
	case command.RemoveNode:
		return m.removeNode(c)
	case command.SetLevel:
		return m.setLevel(c)
	case command.SetTrail:
		return m.setTrail(c)
	case command.Tell:
		return m.tellOperator(c)
	case command.SetDefaults:
		return m.setDefaults(c)
	case command.SetPageSecret:
		return m.setPageSecret(c)
	case command.SetJoinToken:
		return m.setJoinToken(c)
	case command.DeleteJoinToken:
		return m.deleteJoinToken(c)
	case command.UseJoinToken:
		return m.useJoinToken(c)
	case command.RestoreBegin:
		return m.beginRestore(c)
	case command.RestoreChunk:
		return m.takeChunk(c)
	case command.RestoreEnd:
		return m.endRestore(c)
	default:
		panic(fmt.Sprintf("fsm: no rule for %T", c)) // a row without one: a test finds it
	}
	return Result{}
}
