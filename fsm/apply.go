package fsm

import (
	"fmt"

	"github.com/claimq/claimq/fsm/record"
)

// Apply applies the entry of the log at index, in the order of its commands.
// Errors: ErrUnknownCommand and ErrCorrupt, wrapped; then the state may be
// half changed and the caller must end the process.
func (m *Machine) Apply(index uint64, entry []byte) (Applied, error) {
	stamp, count, rest, err := decodeHeader(entry)
	if err != nil {
		return Applied{}, fmt.Errorf("entry %d: %w", index, err)
	}
	applied := m.beginEntry(index, stamp, count)
	commands := m.answers.commands
	err = eachCommand(rest, count, commands, func(i int, c Command) error {
		err := m.applyAt(&applied, i, c)
		commands.reset()
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
func (m *Machine) apply(index uint64, stamp record.Stamp, commands []Command) (Applied, error) {
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
func (m *Machine) applyAt(applied *Applied, i int, c Command) error {
	row := c.kind().row()
	if row == nil {
		return fmt.Errorf("%T: %w", c, ErrUnknownCommand)
	}
	if m.partial != nil && !row.restore {
		m.partial = nil
	}
	m.command, m.picks = i, 0
	result, err := c.applyTo(m)
	if err != nil {
		return err
	}
	if row.steps {
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
