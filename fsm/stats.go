package fsm

// Stats are the counts of the state.
type Stats struct {
	Index              uint64
	Counts             [StatusCancelled + 1]int64 // by Status
	Types              []TypeStats                // sorted by type
	Bytes              int64
	OldestPendingAgeMS int64 // 0 if nothing is pending
}

// TypeStats are the counts of one type.
type TypeStats struct {
	Type   string
	Counts [StatusCancelled + 1]int64
}

// Stats returns the counts, exact at Index. The types are those that have
// tasks, ended ones too. The oldest pending task is the one that was submitted
// first; its age counts from then, also after a requeue.
func (m *Machine) Stats(now Stamp) Stats {
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
