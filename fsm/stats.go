package fsm

import "github.com/claimq/claimq/fsm/record"

// Stats are the counts of the state.
type Stats struct {
	Index              uint64
	Counts             [record.StatusCancelled + 1]int64 // by Status
	Types              []TypeStats                       // sorted by type
	Bytes              int64
	OldestPendingAgeMS int64 // 0 if nothing is pending
}

// TypeStats are the counts of one type.
type TypeStats struct {
	Type   string
	Counts [record.StatusCancelled + 1]int64
}

// Stats returns the counts, exact at Index. The types are those that have
// tasks, ended ones too. The oldest pending task is the one that was submitted
// first; its age counts from then, also after a requeue.
func (m *Machine) Stats(now record.Stamp) Stats {
	s := Stats{Index: m.header.Index, Counts: m.counts, Bytes: m.Bytes()}
	if len(m.types) > 0 {
		s.Types = make([]TypeStats, 0, len(m.types))
	}
	oldest := uint64(0)
	m.byName.Scan(func(_ string, ts *typeState) bool {
		if ts.tasks == 0 {
			return true
		}
		s.Types = append(s.Types, TypeStats{Type: ts.name, Counts: ts.counts})
		if id := ts.oldest; id != 0 && (oldest == 0 || id < oldest) {
			oldest = id
		}
		return true
	})
	if oldest != 0 {
		s.OldestPendingAgeMS = max(now.T-m.tasks.Get(oldest).CreatedAt, 0)
	}
	return s
}

// Bytes estimates the memory that the state holds.
func (m *Machine) Bytes() int64 { return m.bytes + m.trail.Bytes() + bytesOfGaps(&m.tasks) }

// TypeView is what can be seen of a task type.
type TypeView struct {
	Type     string
	Counts   [record.StatusCancelled + 1]int64 // by Status
	Settings record.TypeSettings
	// OldestPendingAgeMS is the age of the pending task that was submitted
	// first; 0 if none is pending.
	OldestPendingAgeMS int64
	// OldestWaitMS is how long that task has waited to be claimed: since its
	// submit, or since its RunAt.
	OldestWaitMS int64
	// How many of its tasks were submitted, completed and failed for good, in
	// millionths per second over the last minute, by T. They are no part of the
	// state, and so not in results: they are counted again after a restart or a
	// restore, and when the type had neither tasks nor settings for a while.
	SubmittedPerS, CompletedPerS, FailedPerS int64
}

// Types returns what can be seen of every type that has tasks or settings,
// sorted by name. now is the time by which ages are told.
func (m *Machine) Types(now record.Stamp) []TypeView {
	views := make([]TypeView, 0, len(m.types))
	m.byName.Scan(func(_ string, ts *typeState) bool {
		views = append(views, m.viewOf(ts, now))
		return true
	})
	return views
}

// Type returns what can be seen of the type, ok false if it has neither tasks
// nor settings.
func (m *Machine) Type(name string, now record.Stamp) (v TypeView, ok bool) {
	ts := m.types[name]
	if ts == nil {
		return TypeView{Type: name}, false
	}
	return m.viewOf(ts, now), true
}

func (m *saved) viewOf(ts *typeState, now record.Stamp) TypeView {
	v := TypeView{Type: ts.name, Counts: ts.counts}
	if ts.record != nil {
		v.Settings = ts.record.Settings
	}
	perS := ts.rates.at(max(now.T, m.header.Stamp.T))
	v.SubmittedPerS, v.CompletedPerS, v.FailedPerS = perS[rateSubmitted], perS[rateCompleted], perS[rateFailed]
	if id := ts.oldest; id != 0 {
		t := m.tasks.Get(id)
		v.OldestPendingAgeMS = max(now.T-t.CreatedAt, 0)
		v.OldestWaitMS = max(now.T-max(t.CreatedAt, t.RunAt), 0)
	}
	return v
}
