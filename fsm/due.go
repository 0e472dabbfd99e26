package fsm

import "github.com/tidwall/btree"

// dueTickMax bounds how many tasks of each kind one tick changes: some
// milliseconds of work. What the last one takes along, the steps of one parent,
// may come on top. When there is more, the next tick is due at once.
const dueTickMax = 1024

// changesMax bounds how many tasks one command changes, steps counted: about, as
// the last thing that is done may reach a parent and all its steps.
const changesMax = 10_000

// expiredUnclaimed is the error of a task that expired before its first claim.
const expiredUnclaimed = "expired before it was claimed"

// moment is a record's place in an order by time: which one, and when. Equal
// times go by id.
type moment struct {
	at int64
	id uint64
}

// timeline is an index of records by time.
type timeline struct{ tree *btree.BTreeG[moment] }

// newTimeline returns an empty one.
func newTimeline() timeline {
	return timeline{btree.NewBTreeGOptions(func(a, b moment) bool {
		return a.at < b.at || a.at == b.at && a.id < b.id
	}, btree.Options{NoLocks: true})}
}

// add adds a record that is not there yet. It is cheapest at the end.
func (l timeline) add(at int64, id uint64) { l.tree.Load(moment{at, id}) }

// remove removes a record that is there.
func (l timeline) remove(at int64, id uint64) { l.tree.Delete(moment{at, id}) }

// first returns the earliest record.
func (l timeline) first() (first moment, ok bool) { return l.tree.Min() }

// due returns the earliest record if its time has come.
func (l timeline) due(now int64) (id uint64, ok bool) {
	next, ok := l.first()
	return next.id, ok && next.at <= now
}

// mayExpire reports whether the task fails at its ExpiresAt: not if it was
// started once.
func mayExpire(t *Task) bool {
	return t.Attempts == 0 && (t.Status == StatusPending || t.Status == StatusScheduled || t.Status == StatusBlocked) && t.options().ExpiresAt != 0
}

// times is what the machine derives of the times of its tasks.
type times struct {
	scheduled timeline // tasks that wait, by RunAt
	expiring  timeline // tasks that were never started, by ExpiresAt
	removing  timeline // ended tasks, by RemoveAt
	// All ended tasks, by CompletedAt: the completed and cancelled ones, and
	// those that failed.
	doneByEnd, failedByEnd timeline
	endedBytes             int64    // what the ended tasks take
	leaving                []uint64 // tasks that the command being applied ended and that are not kept

	finalizing timeline // parents whose finalization is claimed, by when that is over by U

	forgettingGone timeline          // removed tasks, by ForgetU
	goneKeys       map[string]uint64 // name of an idempotency key to the id of a removed task
}

// enterTimes puts a task that takes so many bytes into the indexes by time
// where its fields place it.
func (m *Machine) enterTimes(t *Task, bytes int64) {
	if t.Status.Ended() {
		m.enterEnded(t, bytes)
		return
	}
	if t.Status == StatusScheduled {
		m.scheduled.add(t.RunAt, t.ID)
	}
	if mayExpire(t) {
		m.expiring.add(t.options().ExpiresAt, t.ID)
	}
	if isFinalizing(t) {
		m.finalizing.add(t.Parent().Finalization.overU(), t.ID)
	}
}

// leaveTimes undoes enterTimes.
func (m *Machine) leaveTimes(t *Task, bytes int64) {
	if t.Status.Ended() {
		m.leaveEnded(t, bytes)
		return
	}
	if t.Status == StatusScheduled {
		m.scheduled.remove(t.RunAt, t.ID)
	}
	if mayExpire(t) {
		m.expiring.remove(t.options().ExpiresAt, t.ID)
	}
	if isFinalizing(t) {
		m.finalizing.remove(t.Parent().Finalization.overU(), t.ID)
	}
}

// resetTimes empties the indexes by time.
func (m *Machine) resetTimes() {
	m.scheduled, m.expiring = newTimeline(), newTimeline()
	m.finalizing = newTimeline()
	m.resetEnded()
	m.resetGone()
}

// NextDue returns the earliest calendar time at which a Tick has something to
// do, ok false if there is none. What lives by the lease clock is not in it:
// nothing but memory depends on when a tick finds that.
func (m *Machine) NextDue() (t int64, ok bool) {
	for _, line := range [...]timeline{m.scheduled, m.expiring, m.removing} {
		if next, some := line.first(); some && (!ok || next.at < t) {
			t, ok = next.at, true
		}
	}
	if end, some := m.nextJoinTokenEnd(); some && (!ok || end < t) {
		t, ok = end, true
	}
	return t, ok
}

// tick does what the clocks made due, in a fixed order and a bounded amount of
// each kind. A task that is to be promoted and to expire does both.
func (m *Machine) tick() Result {
	m.promoteDue()
	m.expireDue()
	m.removeDue()
	m.forgetGoneDue()
	m.forgetDue()
	m.clearFinalizations()
	m.expireJoinTokens()
	return Result{}
}

// promoteDue makes scheduled tasks pending whose time has come.
func (m *Machine) promoteDue() {
	for range dueTickMax {
		id, ok := m.scheduled.due(m.header.Stamp.T)
		if !ok {
			return
		}
		t := m.edit(id)
		t.Status = StatusPending
		m.edited(t)
	}
}

// expireDue fails tasks that were to be started by now. With one that is a step
// others may end: all count.
func (m *Machine) expireDue() {
	for start, n := m.changed, 0; n < dueTickMax && m.changed-start < changesMax; n++ {
		id, ok := m.expiring.due(m.header.Stamp.T)
		if !ok {
			return
		}
		t := m.edit(id)
		t.Error = expiredUnclaimed
		m.endUnclaimed(t, StatusFailed)
		m.edited(t)
	}
}
