package sim

import (
	"cmp"
	"slices"
)

// removed is a task that retention or eviction took out, as it was.
type removed struct {
	was     *task
	keyFree bool  // its key was free before
	atU     int64 // when it was removed
}

// finish brings a task to its end.
func (m *model) finish(t *task, to string) {
	t.status, t.completedAt = to, m.t
	if to == cancelled {
		t.worker = ""
	}
	if t.options.active && m.keys[t.taken()] == t.id {
		delete(m.keys, t.taken())
	}
	if m.level < lifeLevel || t.of != 0 { // a step goes with its parent
		return
	}
	keep := t.options.keepMS
	if keep == 0 {
		keep = m.inForce(t.kind).keepMS
	}
	switch {
	case keep == keepForever:
	case keep == keepNone:
		t.removeAt = m.t
		m.leaving = append(m.leaving, t.id)
	case keep != 0:
		t.removeAt = m.t + keep
	case to == failed:
		t.removeAt = m.t + failedKept
	default:
		t.removeAt = m.t + keptByDefault
	}
}

// endWaiting brings a task to its end that is not claimed.
func (m *model) endWaiting(t *task, to string) {
	if n := len(t.log); n > 0 {
		t.token = t.log[n-1].token
	}
	t.byClaim = false
	m.finish(t, to)
	if to == cancelled {
		m.tell(cancelled, t, "")
	} else {
		m.tell(expired, t, "")
	}
}

// tick does what is due.
func (m *model) tick() {
	for _, t := range m.tasks {
		if t != nil && t.status == scheduled && t.runAt.at <= m.t {
			m.change(t).status = pending
		}
	}
	var lapsed []*task
	for _, t := range m.tasks {
		if t != nil && mayLapse(t) && t.options.expiresAt <= m.t {
			lapsed = append(lapsed, t)
		}
	}
	slices.SortStableFunc(lapsed, func(a, b *task) int { return cmp.Compare(a.options.expiresAt, b.options.expiresAt) })
	for _, t := range lapsed {
		if t = m.find(t.id); !mayLapse(t) {
			continue // its parent's step before it has cancelled it
		}
		t = m.change(t)
		t.reason = "expired before it was claimed"
		m.endWaiting(t, failed)
		m.afterEnd(t)
	}
	for _, t := range m.tasks {
		if t != nil && t.removeAt != 0 && t.removeAt <= m.t {
			m.remove(t)
		}
	}
}

// mayLapse reports whether the task fails at its expires_at.
func mayLapse(t *task) bool {
	return t.options.expiresAt != 0 && t.attempts == 0 && (t.status == pending || t.status == scheduled || t.status == blocked)
}

// nextDue returns when a tick has something to do, 0 if never.
func (m *model) nextDue() int64 {
	next := int64(0)
	note := func(at int64) {
		if next == 0 || at < next {
			next = at
		}
	}
	for _, t := range m.tasks {
		if t == nil {
			continue
		}
		if t.status == scheduled {
			note(t.runAt.at)
		}
		if mayLapse(t) {
			note(t.options.expiresAt)
		}
		if t.removeAt != 0 {
			note(t.removeAt)
		}
	}
	return next
}

// removeLeaving removes what the command ended that is not kept.
func (m *model) removeLeaving() {
	for _, id := range m.leaving {
		if t := m.find(id); t != nil && t.removeAt != 0 && t.removeAt <= m.t {
			m.remove(t)
		}
	}
	m.leaving = nil
}

// remove takes out an ended task and remembers it.
func (m *model) remove(t *task) {
	for _, one := range append([]*task{t}, m.stepsOf(t)...) {
		m.removed[one.id] = &removed{was: one, keyFree: m.keys[one.taken()] != one.id, atU: m.u}
		m.drop(one)
	}
}

// evict removes the tasks that ended first, those that failed last, as many as
// the machine did: how much memory a task takes is its business.
func (m *model) evict(bytes int64) answer {
	var all []*task
	for _, t := range m.tasks {
		if t != nil && ended(t.status) && t.of == 0 {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b *task) int {
		return cmp.Or(cmp.Compare(bit(a.status == failed), bit(b.status == failed)),
			cmp.Compare(a.completedAt, b.completedAt), cmp.Compare(a.id, b.id))
	})
	count := m.hint.evicted
	if bytes == 0 {
		count = len(m.tasks)
	}
	gone := 0 // steps count, too
	for _, t := range all {
		if gone >= count {
			break
		}
		gone += 1 + len(m.stepsOf(t))
		m.remove(t)
	}
	return answer{evicted: gone}
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// removedTask returns the removed task if it is remembered, else nil.
func (m *model) removedTask(id uint64) *removed {
	r := m.removed[id]
	if r == nil || m.u >= r.atU+rememberedMS {
		return nil
	}
	return r
}

// removedByKey is holder of removed tasks whose key is taken still.
func (m *model) removedByKey(kind, key string, ofKind bool) *removed {
	if key == "" {
		return nil
	}
	var found *removed
	for id, r := range m.removed { // one at most of each kind of key
		stands := r.was.key == key && (r.was.kind == kind || !ofKind && !r.was.options.ofKind)
		if stands && !r.keyFree && m.removedTask(id) != nil && (found == nil || found.was.options.ofKind) {
			found = r
		}
	}
	return found
}

// seen is what is known of a removed task.
func (r *removed) seen() *task {
	t := &task{id: r.was.id, kind: r.was.kind, status: r.was.status, then: r.was.then}
	if !r.keyFree {
		t.key = r.was.key
	}
	if last := lastEnded(r.was.log); last != nil {
		t.token = last.token
	}
	if r.was.status != cancelled && r.was.byClaim {
		t.worker = r.was.worker
	}
	if r.was.isParent() {
		t.worker, t.token = r.was.worker, r.was.token
	}
	return t
}

// settleRemoved answers a settle of a task that is not there.
func (m *model) settleRemoved(c *command, outcome string) answer {
	r := m.removedTask(c.id)
	if r == nil {
		return answer{code: "task_not_found"}
	}
	last := lastEnded(r.was.log)
	if outcome != "" && last != nil && last.outcome == outcome &&
		(c.token != 0 && c.token == last.token || c.token == 0 && r.was.byClaim && c.worker == last.worker) {
		return answer{repeated: true, gone: true, task: r.seen()}
	}
	return answer{code: "task_" + r.was.status, gone: true, task: r.seen()}
}
