package fsm

import (
	"cmp"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/index"
	"github.com/claimq/claimq/fsm/record"
)

// How long ended tasks are kept, in milliseconds, if neither they, their type nor the
// server say. They are part of the feature level.
const (
	defaultRetentionMS = 24 * 60 * 60 * 1000
	failedRetentionMS  = 14 * defaultRetentionMS
)

// evictMax bounds how many tasks one Evict removes. The steps of the last one come on top.
const evictMax = 1024

// finish ends the task that is being edited. It has no live claim. edited applies the
// consequences of a step's end.
func (m *Machine) finish(t *record.Task, to record.Status) {
	t.Status = to
	t.CompletedAt = m.Stamp().T
	switch to {
	case record.StatusCompleted:
		m.count(m.typeNamed(t.Type), rateCompleted)
		m.tally.Completed++
	case record.StatusFailed:
		m.count(m.typeNamed(t.Type), rateFailed)
		m.tally.Failed++
	case record.StatusCancelled:
		m.tally.Cancelled++
	}
	m.ended = append(m.ended, t.ID)
	if to == record.StatusCancelled {
		t.WorkerID = ""
	}
	if t.Opts().UniqueActive && t.Key != "" {
		m.keys.Remove(t.KeyName(), t.ID)
	}
	if t.Step() != nil {
		m.stepsEnded = append(m.stepsEnded, t.ID)
		return // it is kept as long as its parent
	}
	if m.Level() < record.LevelLife {
		return
	}
	switch keep := m.retentionOf(t); keep {
	case record.KeepForever:
	case record.KeepNone:
		t.RemoveAt = t.CompletedAt
		m.leaving = append(m.leaving, t.ID)
	default:
		t.RemoveAt = m.fromNow(keep)
	}
}

// endUnclaimed is finish for a task that is not claimed: it was cancelled, or not started
// in time. From then on it has the token of its last claim, if any.
func (m *Machine) endUnclaimed(t *record.Task, to record.Status) {
	if n := len(t.Log); n > 0 {
		t.Token = t.Log[n-1].Token
	}
	m.finish(t, to)
	if to == record.StatusCancelled {
		m.tellOf(event.Cancelled, t, "")
	} else {
		m.tellOf(event.Expired, t, "")
	}
}

// revive makes the ended task that is being edited pending. An expiry that has passed is
// cleared, because it would end the task again at once. A step that has to wait for others
// becomes blocked.
func (m *Machine) revive(t *record.Task) {
	m.unend(t)
	t.Status = record.StatusPending
	if o := *t.Opts(); mayExpire(t) && o.ExpiresAt <= m.Stamp().T {
		o.ExpiresAt = 0
		t.SetOptions(o)
	}
	if s := t.Step(); s != nil && m.parents[s.ParentID].waiting[t.StepPlace()] > 0 {
		t.Status = record.StatusBlocked
		return
	}
	m.requeued++
}

// unend clears the fields that the end of the task being edited has set.
func (m *derived) unend(t *record.Task) {
	t.WorkerID, t.Token = "", 0
	t.CompletedAt, t.RemoveAt = 0, 0
	t.Result, t.ResultPayload = nil, nil
	t.CancelRequested = false
	if t.Opts().UniqueActive && t.Key != "" {
		m.keys.Add(t.KeyName(), t.ID)
	}
}

// retentionOf returns how long the ended task is kept: milliseconds above 0, KeepForever or
// KeepNone.
func (m *Machine) retentionOf(t *record.Task) int64 {
	return m.retentionAs(t, t.Status)
}

// retentionAs is retentionOf as if the task had that status.
func (m *Machine) retentionAs(t *record.Task, status record.Status) int64 {
	builtIn := int64(defaultRetentionMS)
	if status == record.StatusFailed {
		builtIn = failedRetentionMS
	}
	return cmp.Or(t.Opts().RetentionMS, m.settingsOf(t.Type).RetentionMS, m.header.Defaults.RetentionMS, builtIn)
}

// ends returns the index of the tasks that ended with that status.
func (m *derived) ends(s record.Status) index.Ends {
	switch s {
	case record.StatusCompleted:
		return m.completed
	case record.StatusFailed:
		return m.failed
	}
	return m.cancelled
}

func (m *derived) enterEnded(t *record.Task, bytes int64) {
	ends := m.ends(t.Status)
	if t.Step() != nil {
		ends.Others.Add(t.CompletedAt, t.ID)
		return // removed with its parent
	}
	ends.Own.Add(t.CompletedAt, t.ID)
	m.endedBytes += bytes
	if t.RemoveAt != 0 {
		m.removing.Add(t.RemoveAt, t.ID)
	}
}

func (m *derived) leaveEnded(t *record.Task, bytes int64) {
	ends := m.ends(t.Status)
	if t.Step() != nil {
		ends.Others.Remove(t.CompletedAt, t.ID)
		return
	}
	ends.Own.Remove(t.CompletedAt, t.ID)
	m.endedBytes -= bytes
	if t.RemoveAt != 0 {
		m.removing.Remove(t.RemoveAt, t.ID)
	}
}

func (m *derived) resetEnded() {
	m.removing = index.NewTimeline()
	m.completed, m.failed, m.cancelled = index.NewEnds(), index.NewEnds(), index.NewEnds()
	m.endedBytes = 0
	m.leaving = nil
}

// EndedBytes estimates the memory that the ended tasks hold.
func (m *Machine) EndedBytes() int64 { return m.endedBytes }

// removeDue removes ended tasks whose retention is over.
func (m *Machine) removeDue() {
	for start := m.removed; m.removed-start < dueTickMax; {
		id, ok := m.removing.Due(m.Stamp().T)
		if !ok {
			return
		}
		m.removeEnded(id)
	}
}

// removeLeaving removes the tasks that the command ended and that are not kept. A task that
// is live again, because the command was undone, stays.
func (m *Machine) removeLeaving() {
	if len(m.leaving) == 0 {
		return
	}
	leaving := m.leaving
	m.leaving = nil
	for _, id := range leaving {
		if t := m.Get(id); t != nil && t.RemoveAt != 0 && t.RemoveAt <= m.Stamp().T {
			m.removeEnded(id)
		}
	}
}

// removeEnded removes an ended task, a parent with its steps, and remembers that they
// existed.
func (m *Machine) removeEnded(id uint64) {
	t := m.Get(id)
	m.removeOne(t)
	if t.Parent() == nil {
		return
	}
	for place := range t.Parent().Plan.Steps {
		m.removeOne(m.Get(id + 1 + uint64(place)))
	}
}

func (m *Machine) removeOne(t *record.Task) {
	m.drop(t)
	m.rememberGone(t)
	m.removed++
}

// evict removes a bounded number of the oldest ended tasks until the rest take no more than
// c.Bytes.
func (m *Machine) evict(c command.Evict) Result {
	start := m.removed
	for m.removed-start < evictMax && m.endedBytes > c.Bytes {
		oldest, ok := m.evictable()
		if !ok {
			break
		}
		m.removeEnded(oldest)
	}
	return Result{Evicted: m.removed - start}
}

// evictable returns the next task to evict: the one that ended first, but failed tasks
// after all others.
func (m *derived) evictable() (id uint64, ok bool) {
	first, ok := m.completed.Own.First()
	if cancelled, some := m.cancelled.Own.First(); some && (!ok || cancelled.Compare(first) < 0) {
		first, ok = cancelled, true
	}
	if !ok {
		first, ok = m.failed.Own.First()
	}
	return first.ID, ok
}
