package fsm

import (
	"fmt"
	"slices"

	"github.com/claimq/claimq/fsm/claimable"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/table"
	"github.com/claimq/claimq/fsm/trail"
)

// undo is the journal of an atomic batch: what its ops replaced, so that all of it can be
// restored. It contains only saved data, and what the entry reports to its caller. Derived
// data of the changed records is removed and then rebuilt from the restored records by the
// code that loads snapshots, so that it comes out as if there had been no batch.
type undo struct {
	header   record.Header
	tasks    table.Journal[record.Task]
	requests table.Journal[record.Request]
	gone     table.Journal[record.Gone]
	types    []formerType
	counted  []counted // newest last
	timed    []timed
	dropped  []droppedType // a type's first drop comes first

	// What the entry had done so far, to report to its caller.
	begun    []command.Lease
	noted    []claimable.Ready
	requeued int
	tally    Tally
	ended    []uint64
	trail    trail.Mark
	told     uint32
}

// droppedType is a type that lost its last task, with its latencies.
type droppedType struct {
	was       *typeState
	latencies *Latencies
}

// formerType is a type's record before a change.
type formerType struct {
	record *record.TaskType
	was    record.TaskType
}

// beginUndo begins the journal. Exactly one of keepAll and undoAll must follow.
func (m *Machine) beginUndo() {
	u := &undo{
		header: m.header, begun: m.begun, noted: m.types.Noted(), requeued: m.requeued, tally: m.tally,
		ended: m.ended, trail: m.trail.Mark(), told: m.told,
	}
	m.undo = u
	m.tasks.SetJournal(&u.tasks)
	m.requests.SetJournal(&u.requests)
	m.gone.SetJournal(&u.gone)
}

// keepAll ends the journal and keeps the changes.
func (m *Machine) keepAll() *undo {
	u := m.undo
	m.undo = nil
	m.tasks.SetJournal(nil)
	m.requests.SetJournal(nil)
	m.gone.SetJournal(nil)
	return u
}

// noteType records that the type's record is about to change.
func (m *effects) noteType(r *record.TaskType) {
	if m.undo != nil {
		m.undo.types = append(m.undo.types, formerType{r, *r})
	}
}

// undoAll ends the journal and undoes everything since it began. An error means a bug, and
// a state that is half changed.
func (m *Machine) undoAll() error {
	u := m.keepAll()
	tasks, requests, removed := u.tasks.IDs(), u.requests.IDs(), u.gone.IDs()
	for _, c := range u.counted {
		m.takeBack(c)
	}
	for _, t := range u.timed {
		m.takeBackTime(t)
	}
	m.undo = u // to record types that are dropped
	holders := m.takeOff(tasks, requests, removed)
	m.undo = nil

	m.header = u.header
	m.trail.Cut(u.trail)
	m.told = u.told
	u.tasks.Restore(&m.tasks)
	u.requests.Restore(&m.requests)
	u.gone.Restore(&m.gone)
	for _, f := range slices.Backward(u.types) {
		*f.record = f.was
	}

	if err := m.putBack(tasks, requests, removed, holders); err != nil {
		return fmt.Errorf("undo a batch: %w", err)
	}
	for _, gone := range slices.Backward(u.dropped) {
		if ts := m.typeNamed(gone.was.Name()); ts != nil {
			ts.rates = gone.was.rates
			if ts.latencies != nil && gone.latencies != nil {
				*ts.latencies = *gone.latencies
			}
		}
	}
	for _, f := range u.types {
		m.types.Limit(&m.typeNamed(f.record.Name).Type, f.record, m.Stamp().T)
	}
	m.types.PutNoted(u.noted)
	m.begun, m.ended, m.requeued, m.tally = u.begun, u.ended, u.requeued, u.tally
	m.leaving = nil
	return nil
}

// holder is a claim request that did not change, with the token of one of its live claims.
type holder struct{ token, request uint64 }

// takeOff removes the records, in their current form, from everything derived.
func (m *Machine) takeOff(tasks, requests, removed []uint64) []holder {
	for _, seq := range requests {
		if r := m.requests.Get(seq); r != nil {
			m.excludeRequest(seq, r)
		}
	}
	var holders []holder
	for _, id := range tasks {
		if t := m.tasks.Get(id); t != nil {
			if h := m.unindexTask(t); h.request != 0 {
				holders = append(holders, h)
			}
		}
	}
	for _, id := range removed {
		if g := m.gone.Get(id); g != nil {
			m.excludeGone(id, g)
		}
	}
	return holders
}

// putBack is the opposite of takeOff, after the records were restored.
func (m *Machine) putBack(tasks, requests, removed []uint64, holders []holder) error {
	for _, id := range removed {
		if g := m.gone.Get(id); g != nil {
			if problem := m.indexGone(id, g); problem != "" {
				return contradiction(record.KindGone, id, problem)
			}
		}
	}
	for _, id := range tasks {
		if t := m.tasks.Get(id); t != nil {
			if problem := m.indexTask(id, t); problem != "" {
				return contradiction(record.KindTask, id, problem)
			}
			m.tasks.Rest(id)
		}
	}
	for _, h := range holders {
		if ref, live := m.claims.Get(h.token); live {
			ref.request = h.request
			m.claims.Set(h.token, ref)
		}
	}
	for _, seq := range requests {
		if r := m.requests.Get(seq); r != nil {
			if problem := m.indexRequest(seq, r); problem != "" {
				return contradiction(record.KindRequest, seq, problem)
			}
		}
	}
	return nil
}

// contradiction returns an error for an inconsistent record.
func contradiction(kind record.Kind, id uint64, problem string) error {
	return fmt.Errorf("%v %d: %s: %w", kind, id, problem, ErrCorrupt)
}
