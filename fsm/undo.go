package fsm

import (
	"fmt"
	"slices"

	"github.com/claimq/claimq/fsm/record"
)

// beginUndo begins the journal. Exactly one of keepAll and undoAll must follow.
func beginUndo(m *Machine) {
	u := &undo{
		header: m.header, begun: m.begun, noted: m.types.Noted(), requeued: m.requeued, tally: m.tally,
		ended: m.ended, trail: m.trail.Mark(), told: m.told, histories: len(m.histories.all),
	}
	m.undo = u
	m.tasks.SetJournal(&u.tasks)
	m.requests.table.SetJournal(&u.requests)
	m.gone.table.SetJournal(&u.gone)
	m.turns.table.SetJournal(&u.turns)
	m.shares.table.SetJournal(&u.shares)
}

// keepAll ends the journal and keeps the changes.
func keepAll(m *Machine) *undo {
	u := m.undo
	m.undo = nil
	m.tasks.SetJournal(nil)
	m.requests.table.SetJournal(nil)
	m.gone.table.SetJournal(nil)
	m.turns.table.SetJournal(nil)
	m.shares.table.SetJournal(nil)
	return u
}

// noteType records that the type's record is about to change.
func noteType(m *Machine, r *record.TaskType) {
	if m.undo != nil {
		m.undo.types = append(m.undo.types, formerType{r, *r})
	}
}

// undoAll ends the journal and undoes everything since it began. An error means a bug, and
// a state that is half changed.
func undoAll(m *Machine) error {
	u := keepAll(m)
	tasks, requests, removed := u.tasks.IDs(), u.requests.IDs(), u.gone.IDs()
	turns, shares := u.turns.IDs(), u.shares.IDs()
	for _, c := range u.counted {
		takeBack(m, c)
	}
	for _, t := range u.timed {
		takeBackTime(m, t)
	}
	dropHistories(m, u.histories)
	m.undo = u // to record types that are dropped
	m.types.BeginUndo()
	claims := takeOff(m, tasks, requests, removed)
	for _, number := range turns {
		if t := m.turns.table.Get(number); t != nil {
			m.types.ForgetTurn(&m.types.named(t.Type).Type, t)
		}
	}
	for _, number := range shares {
		if m.shares.table.Get(number) != nil {
			m.unindexShare(number)
		}
	}
	m.undo = nil

	m.header = u.header
	m.trail.Cut(u.trail)
	m.told = u.told
	u.tasks.Restore(&m.tasks)
	u.requests.Restore(&m.requests.table)
	u.gone.Restore(&m.gone.table)
	u.turns.Restore(&m.turns.table)
	u.shares.Restore(&m.shares.table)
	for _, f := range slices.Backward(u.types) {
		*f.record = f.was
	}

	if err := putBack(m, tasks, requests, removed, claims); err != nil {
		return fmt.Errorf("undo a batch: %w", err)
	}
	for _, number := range shares {
		if m.shares.table.Get(number) == nil {
			continue
		}
		if problem := m.indexShare(number); problem != "" {
			return fmt.Errorf("undo a batch: %w", contradiction(record.KindShare, number, problem))
		}
	}
	for _, number := range turns {
		if m.turns.table.Get(number) == nil {
			continue
		}
		if problem := m.indexTurn(number); problem != "" {
			return fmt.Errorf("undo a batch: %w", contradiction(record.KindTurn, number, problem))
		}
	}
	m.types.EndUndo(&m.turns, m.Stamp().T)
	for _, gone := range slices.Backward(u.dropped) {
		if ts := m.types.named(gone.Name()); ts != nil {
			ts.rates = gone.rates
		}
	}
	for _, f := range u.types {
		m.types.SetRecord(&m.types.named(f.record.Name).Type, f.record, &m.turns, m.Stamp().T)
	}
	m.types.PutNoted(u.noted)
	m.begun, m.ended, m.requeued, m.tally = u.begun, u.ended, u.requeued, u.tally
	m.ends.leaving = nil
	return nil
}

// dropHistories drops those that began after there were count.
func dropHistories(m *Machine, count int) {
	h := &m.histories
	for _, s := range h.all[count:] {
		delete(h.byType, s.Type)
		h.bytes -= record.BytesOfHistory(s)
		if ts := m.types.named(s.Type); ts != nil {
			ts.history = nil
		}
	}
	clear(h.all[count:])
	h.all = h.all[:count]
}

// takeOff removes the records, in their current form, from everything derived.
func takeOff(m *Machine, tasks, requests, removed []uint64) []claimOfRequest {
	for _, seq := range requests {
		if r := m.requests.table.Get(seq); r != nil {
			m.requests.exclude(seq, r, &m.claims)
		}
	}
	var claims []claimOfRequest
	for _, id := range tasks {
		if t := m.tasks.Get(id); t != nil {
			if c := m.unindexTask(t); c.request != 0 {
				claims = append(claims, c)
			}
		}
	}
	for _, id := range removed {
		if g := m.gone.table.Get(id); g != nil {
			m.gone.exclude(id, g)
		}
	}
	return claims
}

// putBack is the opposite of takeOff, after the records were restored.
func putBack(m *Machine, tasks, requests, removed []uint64, claims []claimOfRequest) error {
	for _, id := range removed {
		if g := m.gone.table.Get(id); g != nil {
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
	for _, c := range claims {
		m.claims.setRequest(c.token, c.request)
	}
	for _, seq := range requests {
		if r := m.requests.table.Get(seq); r != nil {
			if problem := m.requests.index(seq, r, m.header.NextRequest, &m.claims); problem != "" {
				return contradiction(record.KindRequest, seq, problem)
			}
		}
	}
	return nil
}
