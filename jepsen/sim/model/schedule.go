package model

// Schedule submits a task again and again.
type Schedule struct {
	Name     string
	Task     NewTask
	EveryMS  int64
	Cron     string // instead of everyMS
	Overlap  bool   // also while the last task has not ended
	SkipLate bool   // what was missed is passed over
	Paused   bool
	Next     int64 // the slot that it waits for, by T; 0: none
}

// Kept is a schedule as it is kept. It never changes: every change makes a new
// one.
type Kept struct {
	Schedule
	Version              uint64
	Last                 uint64 // task
	LastAt               int64
	Skipped              uint64
	CreatedAt, UpdatedAt int64
}

// SlotRun is one slot of a schedule, as a leader proposes it.
type SlotRun struct {
	Name       string
	Version    uint64
	Slot, Next int64
	Skip       bool
}

// SamePlan reports whether both run at the same times.
func (s *Schedule) SamePlan(other *Schedule) bool {
	return s.Cron == other.Cron && s.EveryMS == other.EveryMS
}

func (m *Model) setSchedule(s *Schedule) Answer {
	k := &Kept{Schedule: *s, Version: m.Index, CreatedAt: m.T, UpdatedAt: m.T}
	if k.Paused {
		k.Next = 0
	}
	was := m.Schedules[k.Name]
	if was != nil {
		k.Version = max(k.Version, was.Version+1)
		k.Last, k.LastAt, k.CreatedAt = was.Last, was.LastAt, was.CreatedAt
		if k.SamePlan(&was.Schedule) && k.Next != 0 {
			k.Next = max(k.Next, was.Next) // what is done is not done again
		}
		if k.Cron == was.Cron && k.EveryMS == was.EveryMS && k.Next != 0 && k.Next < was.Next {
			k.Next = was.Next // what was done is not done again
		}
	}
	m.Schedules[k.Name] = k
	m.tell("schedule_set", nil, k.Name)
	return Answer{Schedule: k, Created: was == nil}
}

func (m *Model) deleteSchedule(name string) Answer {
	if m.Schedules[name] == nil {
		return Answer{Code: "schedule_not_found"}
	}
	delete(m.Schedules, name)
	m.tell("schedule_deleted", nil, name)
	return Answer{}
}

// runSlots does each slot that its schedule, as it is now, waits for, once its
// time has come.
func (m *Model) runSlots(runs []SlotRun) Answer {
	var a Answer
	for _, r := range runs {
		was := m.Schedules[r.Name]
		if was == nil || was.Version != r.Version || r.Slot == 0 || was.Next != r.Slot || m.T < r.Slot || r.Next != 0 && r.Next <= r.Slot {
			continue
		}
		k := *was
		k.Next = r.Next
		if last := m.Find(k.Last); r.Skip || !k.Overlap && last != nil && !Ended(last.Status) {
			k.Skipped++
		} else {
			s := m.submitBy(&k.Task, "schedule "+k.Name)
			k.Last, k.LastAt = s.Task.ID, r.Slot
			a.Submitted = append(a.Submitted, s)
		}
		m.Schedules[k.Name] = &k
	}
	return a
}

// NextSlot returns the earliest slot that a schedule waits for, 0 if none does.
func (m *Model) NextSlot() int64 {
	next := int64(0)
	for _, k := range m.Schedules {
		if k.Next != 0 && (next == 0 || k.Next < next) {
			next = k.Next
		}
	}
	return next
}
