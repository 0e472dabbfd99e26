package fsm

import (
	"fmt"

	"github.com/claimq/claimq/fsm/claimable"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// Apply applies the entry of the log at index, in the order of its commands. Errors:
// ErrUnknownCommand and ErrCorrupt, wrapped; then the state may be half changed and the
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

// Replay is ApplyInto for callers that need no results, such as followers. The result is
// valid until the next Replay.
func (m *Machine) Replay(index uint64, entry []byte) (Applied, error) {
	if m.reused == nil {
		m.reused = newAnswers(slabReused, slabSpares)
	}
	return m.ApplyInto(Answers{m.reused}, index, entry)
}

// apply is Apply for a decoded entry.
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
	// The clocks move before the first command and never go back, because a new leader's
	// calendar may be behind the old one's.
	m.header.Index = index
	m.header.Stamp.U = max(m.header.Stamp.U, stamp.U)
	m.header.Stamp.T = max(m.header.Stamp.T, stamp.T)
	m.types.OpenDue(m.header.Stamp.T)
	m.went.forget(m.header.Stamp.T)
	m.told = 0
	return Applied{Index: index, Stamp: m.header.Stamp, Results: m.answers.results.take(count)}
}

// applyAt applies the command at index i of the entry.
func (m *Machine) applyAt(applied *Applied, i int, c command.Command) error {
	row := command.RowOf(c)
	if m.partial != nil && !row.Restore {
		m.partial = nil
	}
	m.dice = claimable.Dice{Index: m.header.Index, Place: i}
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

// do applies one command. Errors: those of undoAll.
func (m *Machine) do(c command.Command) (Result, error) {
	switch c := c.(type) {
	case *command.Submit: // these three are decoded into reused memory
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
	case command.Retry:
		return m.retry(c), nil
	case command.Delete:
		return m.delete(c), nil
	case command.Cancel:
		return m.cancel(c), nil
	case command.Patch:
		return m.patch(c), nil
	case command.Expire:
		return m.expire(c), nil
	case command.Batch:
		return m.batch(c)
	case command.Tick:
		return m.tick(), nil
	}
	return m.doRarely(c), nil
}

// doRarely applies the less frequent commands.
func (m *Machine) doRarely(c command.Command) Result {
	switch c := c.(type) {
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

// operate applies the commands that change the cluster's own records.
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
		panic(fmt.Sprintf("fsm: no rule for %T", c)) // a table row without a rule; a test finds it
	}
	return Result{}
}

// Answers is reusable memory for the results of one entry at a time.
type Answers struct{ memory *answers }

// NewAnswers returns memory for the results of an entry.
func NewAnswers() Answers { return Answers{newAnswers(slabReused, slabSpares)} }

// answers holds the memory for the results of entries and for their decoded commands.
type answers struct {
	commands  *command.Scratch // owned by the machine
	results   slab[Result]
	submitted slab[Submitted]
	tasks     slab[record.Task]
	claims    slab[Claim]
	leases    []command.Lease // leases begun by the entry; emptied after it
	ended     []uint64        // tasks ended by the entry; emptied after it
}

// The number of elements that a slab allocates at a time. It is small where callers keep
// elements, because keeping one keeps the whole allocation alive, and large enough for most
// entries where memory is reused. Every slab starts small and doubles.
const (
	slabKept   = 16
	slabReused = 1024
)

// slabSpares bounds the allocations that a slab keeps for reuse in addition to its newest.
// They hold 8,192 tasks; an entry has at most 10,000.
const slabSpares = 7

func newAnswers(size, spares int) *answers {
	return &answers{
		commands:  new(command.Scratch),
		results:   slab[Result]{size: size, spares: spares},
		submitted: slab[Submitted]{size: size, spares: spares},
		tasks:     slab[record.Task]{size: size, spares: spares},
		claims:    slab[Claim]{size: size, spares: spares},
	}
}

// reset takes back everything handed out.
func (a *answers) reset() {
	a.results.reset()
	a.submitted.reset()
	a.tasks.reset()
	a.claims.reset()
}

// slab hands out elements of larger allocations.
type slab[T any] struct {
	size   int   // elements of a full allocation
	spares int   // how many older allocations are kept for reuse
	all    []T   // the newest allocation
	used   int   // elements of all that are handed out
	full   [][]T // older full allocations that are kept
	spare  [][]T // cleared allocations to use next
}

// take returns n zeroed elements.
func (s *slab[T]) take(n int) []T {
	if n > s.size {
		return make([]T, n)
	}
	if s.used+n > len(s.all) {
		s.grow(n)
	}
	taken := s.all[s.used : s.used+n : s.used+n]
	s.used += n
	return taken
}

// grow continues with another allocation of at least n elements. Allocations below the full
// size are not kept.
func (s *slab[T]) grow(n int) {
	last := len(s.spare) - 1
	if len(s.all) == s.size && (last >= 0 || len(s.full) < s.spares) {
		s.full = append(s.full, s.all)
	}
	s.used = 0
	if last < 0 {
		s.all = make([]T, min(s.size, max(n, 2*len(s.all), slabKept)))
		return
	}
	s.all, s.spare = s.spare[last], s.spare[:last]
}

// reset takes back what was handed out. Callers must not read it any more.
func (s *slab[T]) reset() {
	clear(s.all[:s.used]) // so that they do not keep user data alive
	s.used = 0
	for _, used := range s.full {
		clear(used)
		s.spare = append(s.spare, used)
	}
	s.full = s.full[:0]
}

// copyOf copies the task for a result. The copy shares byte slices and the attempts log,
// which are never changed in place.
func (m *Machine) copyOf(t *record.Task) *record.Task {
	c := &m.answers.tasks.take(1)[0]
	*c = *t
	return c
}

// withCopy replaces the state's own task in a result by a copy.
func (m *Machine) withCopy(result Result) Result {
	if result.Task != nil && !result.Gone {
		result.Task = m.copyOf(result.Task)
	}
	return result
}

// refused returns a refusal with a copy of the task.
func (m *Machine) refused(code Code, t *record.Task) Result {
	return Result{Code: code, Task: m.copyOf(t)}
}
