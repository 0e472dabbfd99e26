package sim

// schedule submits a task again and again.
type schedule struct {
	name     string
	task     newTask
	everyMS  int64
	cron     string // instead of everyMS
	overlap  bool   // also while the last task has not ended
	skipLate bool   // what was missed is passed over
	paused   bool
	next     int64 // the slot that it waits for, by T; 0: none
}

// kept is a schedule as it is kept. It never changes: every change makes a new
// one.
type kept struct {
	schedule
	version              uint64
	last                 uint64 // task
	lastAt               int64
	skipped              uint64
	createdAt, updatedAt int64
}

// slotRun is one slot of a schedule, as a leader proposes it.
type slotRun struct {
	name       string
	version    uint64
	slot, next int64
	skip       bool
}

// samePlan reports whether both run at the same times.
func (s *schedule) samePlan(other *schedule) bool {
	return s.cron == other.cron && s.everyMS == other.everyMS
}

func (m *model) setSchedule(s *schedule) answer {
	k := &kept{schedule: *s, version: m.index, createdAt: m.t, updatedAt: m.t}
	if k.paused {
		k.next = 0
	}
	was := m.schedules[k.name]
	if was != nil {
		k.version = max(k.version, was.version+1)
		k.last, k.lastAt, k.createdAt = was.last, was.lastAt, was.createdAt
		if k.samePlan(&was.schedule) && k.next != 0 {
			k.next = max(k.next, was.next) // what is done is not done again
		}
		if k.cron == was.cron && k.everyMS == was.everyMS && k.next != 0 && k.next < was.next {
			k.next = was.next // what was done is not done again
		}
	}
	m.schedules[k.name] = k
	m.tell("schedule_set", nil, k.name)
	return answer{schedule: k, created: was == nil}
}

func (m *model) deleteSchedule(name string) answer {
	if m.schedules[name] == nil {
		return answer{code: "schedule_not_found"}
	}
	delete(m.schedules, name)
	m.tell("schedule_deleted", nil, name)
	return answer{}
}

// runSlots does each slot that its schedule, as it is now, waits for, once its
// time has come.
func (m *model) runSlots(runs []slotRun) answer {
	var a answer
	for _, r := range runs {
		was := m.schedules[r.name]
		if was == nil || was.version != r.version || r.slot == 0 || was.next != r.slot || m.t < r.slot || r.next != 0 && r.next <= r.slot {
			continue
		}
		k := *was
		k.next = r.next
		if last := m.find(k.last); r.skip || !k.overlap && last != nil && !ended(last.status) {
			k.skipped++
		} else {
			s := m.submitBy(&k.task, "schedule "+k.name)
			k.last, k.lastAt = s.task.id, r.slot
			a.submitted = append(a.submitted, s)
		}
		m.schedules[k.name] = &k
	}
	return a
}

// nextSlot returns the earliest slot that a schedule waits for, 0 if none does.
func (m *model) nextSlot() int64 {
	next := int64(0)
	for _, k := range m.schedules {
		if k.next != 0 && (next == 0 || k.next < next) {
			next = k.next
		}
	}
	return next
}
