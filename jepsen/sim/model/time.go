package model

import (
	"cmp"
	"slices"
)

// removed is a task that retention or eviction took out, as it was.
type removed struct {
	was     *Task
	keyFree bool  // its key was free before
	atU     int64 // when it was removed
}

// finish brings a task to its end.
func (m *Model) finish(t *Task, to string) {
	t.Status, t.CompletedAt = to, m.T
	if to == Cancelled {
		t.Worker = ""
	}
	if t.Options.Active && m.Keys[t.Taken()] == t.ID {
		delete(m.Keys, t.Taken())
	}
	if m.Level < LifeLevel || t.Of != 0 { // a step goes with its parent
		return
	}
	keep := t.Options.KeepMS
	if keep == 0 {
		keep = m.inForce(t.Kind).KeepMS
	}
	switch {
	case keep == KeepForever:
	case keep == KeepNone:
		t.RemoveAt = m.T
		m.leaving = append(m.leaving, t.ID)
	case keep != 0:
		t.RemoveAt = m.T + keep
	case to == Failed:
		t.RemoveAt = m.T + failedKept
	default:
		t.RemoveAt = m.T + KeptByDefault
	}
}

// endWaiting brings a task to its end that is not claimed.
func (m *Model) endWaiting(t *Task, to string) {
	if n := len(t.Log); n > 0 {
		t.Token = t.Log[n-1].Token
	}
	t.byClaim = false
	m.finish(t, to)
	if to == Cancelled {
		m.tell(Cancelled, t, "")
	} else {
		m.tell(expired, t, "")
	}
}

// tick does what is due.
func (m *Model) tick() {
	for _, t := range m.Tasks {
		if t != nil && t.Status == Scheduled && t.RunAt.at <= m.T {
			m.change(t).Status = Pending
		}
	}
	var lapsed []*Task
	for _, t := range m.Tasks {
		if t != nil && mayLapse(t) && t.Options.ExpiresAt <= m.T {
			lapsed = append(lapsed, t)
		}
	}
	slices.SortStableFunc(lapsed, func(a, b *Task) int { return cmp.Compare(a.Options.ExpiresAt, b.Options.ExpiresAt) })
	for _, t := range lapsed {
		if t = m.Find(t.ID); !mayLapse(t) {
			continue // its parent's step before it has cancelled it
		}
		t = m.change(t)
		t.Reason = "expired before it was claimed"
		m.endWaiting(t, Failed)
		m.afterEnd(t)
	}
	for _, t := range m.Tasks {
		if t != nil && t.RemoveAt != 0 && t.RemoveAt <= m.T {
			m.remove(t)
		}
	}
}

// mayLapse reports whether the task fails at its expires_at.
func mayLapse(t *Task) bool {
	return t.Options.ExpiresAt != 0 && t.Attempts == 0 && (t.Status == Pending || t.Status == Scheduled || t.Status == Blocked)
}

// NextDue returns when a tick has something to do, 0 if never.
func (m *Model) NextDue() int64 {
	next := int64(0)
	note := func(at int64) {
		if next == 0 || at < next {
			next = at
		}
	}
	for _, t := range m.Tasks {
		if t == nil {
			continue
		}
		if t.Status == Scheduled {
			note(t.RunAt.at)
		}
		if mayLapse(t) {
			note(t.Options.ExpiresAt)
		}
		if t.RemoveAt != 0 {
			note(t.RemoveAt)
		}
	}
	return next
}

// removeLeaving removes what the command ended that is not kept.
func (m *Model) removeLeaving() {
	for _, id := range m.leaving {
		if t := m.Find(id); t != nil && t.RemoveAt != 0 && t.RemoveAt <= m.T {
			m.remove(t)
		}
	}
	m.leaving = nil
}

// remove takes out an ended task and remembers it.
func (m *Model) remove(t *Task) {
	for _, one := range append([]*Task{t}, m.StepsOf(t)...) {
		m.removed[one.ID] = &removed{was: one, keyFree: m.Keys[one.Taken()] != one.ID, atU: m.U}
		m.drop(one)
	}
}

// evict removes the tasks that ended first, those that failed last, as many as
// the machine did: how much memory a task takes is its business.
func (m *Model) evict(bytes int64) Answer {
	var all []*Task
	for _, t := range m.Tasks {
		if t != nil && Ended(t.Status) && t.Of == 0 {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b *Task) int {
		return cmp.Or(cmp.Compare(bit(a.Status == Failed), bit(b.Status == Failed)),
			cmp.Compare(a.CompletedAt, b.CompletedAt), cmp.Compare(a.ID, b.ID))
	})
	count := m.hint.Evicted
	if bytes == 0 {
		count = len(m.Tasks)
	}
	gone := 0 // steps count, too
	for _, t := range all {
		if gone >= count {
			break
		}
		gone += 1 + len(m.StepsOf(t))
		m.remove(t)
	}
	return Answer{Evicted: gone}
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// removedTask returns the removed task if it is remembered, else nil.
func (m *Model) removedTask(id uint64) *removed {
	r := m.removed[id]
	if r == nil || m.U >= r.atU+RememberedMS {
		return nil
	}
	return r
}

// removedByKey is holder of removed tasks whose key is taken still.
func (m *Model) removedByKey(kind, key string, ofKind bool) *removed {
	if key == "" {
		return nil
	}
	var found *removed
	for id, r := range m.removed { // one at most of each kind of key
		stands := r.was.Key == key && (r.was.Kind == kind || !ofKind && !r.was.Options.OfKind)
		if stands && !r.keyFree && m.removedTask(id) != nil && (found == nil || found.was.Options.OfKind) {
			found = r
		}
	}
	return found
}

// seen is what is known of a removed task.
func (r *removed) seen() *Task {
	t := &Task{ID: r.was.ID, Kind: r.was.Kind, Status: r.was.Status, Then: r.was.Then}
	if !r.keyFree {
		t.Key = r.was.Key
	}
	if last := lastEnded(r.was.Log); last != nil {
		t.Token = last.Token
	}
	if r.was.Status != Cancelled && r.was.byClaim {
		t.Worker = r.was.Worker
	}
	if r.was.IsParent() {
		t.Worker, t.Token = r.was.Worker, r.was.Token
	}
	return t
}

// settleRemoved answers a settle of a task that is not there.
func (m *Model) settleRemoved(c *Command, outcome string) Answer {
	r := m.removedTask(c.ID)
	if r == nil {
		return Answer{Code: "task_not_found"}
	}
	last := lastEnded(r.was.Log)
	if outcome != "" && last != nil && last.Outcome == outcome &&
		(c.Token != 0 && c.Token == last.Token || c.Token == 0 && r.was.byClaim && c.Worker == last.Worker) {
		return Answer{Repeated: true, Gone: true, Task: r.seen()}
	}
	return Answer{Code: "task_" + r.was.Status, Gone: true, Task: r.seen()}
}
