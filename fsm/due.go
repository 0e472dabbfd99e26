package fsm

import (
	"cmp"
	"iter"
	"slices"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/index"
	"github.com/claimq/claimq/fsm/record"
)

// dueTickMax bounds how many tasks of each kind one tick changes, which takes some
// milliseconds. The steps of the last task's parent may come on top. If there is more to
// do, the next tick is due at once.
const dueTickMax = 1024

// Bounds of what a move moves in a turn.
const (
	moveTurnMax  = 500     // tasks
	moveTurnSize = 8 << 20 // bytes, unless it is one task
)

// NextDue returns the earliest calendar time at which a Tick has something to do; ok is false if
// nothing is due at any time. It ignores what ends by the lease clock, because a delay there only
// costs memory.
func (m *Machine) NextDue() (t int64, ok bool) {
	for _, line := range [...]index.Timeline{m.times.scheduled, m.times.expiring, m.ends.removing} {
		if next, some := line.First(); some && (!ok || next.At < t) {
			t, ok = next.At, true
		}
	}
	if end, some := nextJoinTokenEnd(m); some && (!ok || end < t) {
		t, ok = end, true
	}
	if r := m.types.nextMove(); r != nil && (!ok || r.Move.NextAt < t) {
		t, ok = r.Move.NextAt, true
	}
	return t, ok
}

// tick does what is due, in a fixed order and a bounded amount of each kind. A task that is
// due both to be promoted and to expire does both.
func tick(m *Machine) Result {
	promoteDue(m)
	expireDue(m)
	moveDue(m)
	removeDue(m)
	m.gone.forgetDue(m.Stamp().U)
	m.requests.forgetDue(m.Stamp().U, &m.claims)
	clearFinalizations(m)
	expireJoinTokens(m)
	return Result{}
}

// promoteDue makes scheduled tasks pending whose time has come.
func promoteDue(m *Machine) {
	for range dueTickMax {
		id, ok := m.times.scheduled.Due(m.Stamp().T)
		if !ok {
			return
		}
		t := m.edit(id)
		t.Status = record.StatusPending
		m.edited(t)
	}
}

// expireDue fails tasks that should have been started, or should have got their signal, by now.
// That may end other steps of the same parent, which count, too.
func expireDue(m *Machine) {
	for start, n := m.changed, 0; n < dueTickMax && m.changed-start < changesMax; n++ {
		id, ok := m.times.expiring.Due(m.Stamp().T)
		if !ok {
			return
		}
		t := m.edit(id)
		_, t.Error = failsAt(t)
		endUnclaimed(m, t, record.StatusFailed)
		settled(m, t)
	}
}

// expire ends the claims whose lease is still the one that the leader saw end.
func expire(m *Machine, c command.Expire) Result {
	var result Result
	for _, l := range c.Items {
		t := m.Get(l.TaskID)
		if t == nil || t.Status != record.StatusClaimed || t.Token != l.Token || t.LeaseSeq != l.Seq {
			continue
		}
		t = m.edit(l.TaskID)
		if lastAttempt(m, t) {
			giveUp(m, t, record.OutcomeExpired, "")
		} else {
			giveBack(m, t, record.OutcomeExpired, "", m.backoffDelay(t))
		}
		if t.Status == record.StatusFailed {
			t.Error = leaseExpired
		}
		settled(m, t)
		bury(m, t)
		result.Expired++
	}
	return result
}

// Lease returns the lease of the task's claim; ok is false if the task is not claimed.
func (m *Machine) Lease(taskID uint64) (l command.Lease, ok bool) {
	t := m.Get(taskID)
	if t == nil || t.Status != record.StatusClaimed {
		return command.Lease{}, false
	}
	return leaseOf(t), true
}

// Leases yields the lease of every live claim, in token order.
func (m *Machine) Leases() iter.Seq[command.Lease] {
	leases := make([]command.Lease, 0, m.ClaimCount())
	for task := range m.claims.holdings.All {
		leases = append(leases, leaseOf(m.Get(task)))
	}
	slices.SortFunc(leases, func(a, b command.Lease) int { return cmp.Compare(a.Token, b.Token) })
	return slices.Values(leases)
}

// removeDue removes ended tasks whose retention is over.
func removeDue(m *Machine) {
	for start := m.removed; m.removed-start < dueTickMax; {
		id, ok := m.ends.removing.Due(m.Stamp().T)
		if !ok {
			return
		}
		removeEnded(m, id)
	}
}

// clearFinalizations removes a bounded number of claims of finalizations that are over. The bound
// affects no answer, because every reader checks the time itself.
func clearFinalizations(m *Machine) {
	for range dueTickMax {
		id, ok := m.times.finalizing.Due(m.Stamp().U)
		if !ok {
			return
		}
		replaceFinalization(m, id, &record.Finalization{Attempts: m.Get(id).Parent().Finalization.Attempts})
	}
}

// moveDue lets the moves that are due take turns, the one that has waited longest first.
func moveDue(m *Machine) {
	for start := m.changed; m.changed-start < dueTickMax; {
		r := m.types.nextMove()
		if r == nil || r.Move.NextAt > m.Stamp().T {
			return
		}
		moveTurn(m, r)
	}
}

// moveTurn moves the type's oldest waiting tasks, as many as are due.
func moveTurn(m *Machine, r *record.TaskType) {
	v := *r.Move // it is shared by results and snapshots
	most := moveTurnMax
	if v.Rate > 0 {
		most = min(most, int(v.Rate))
	}
	moved, size := 0, 0
	for moved < most && size < moveTurnSize && v.Status == record.MoveRunning {
		id := m.types.named(r.Name).Oldest()
		if id == 0 || id >= v.Until {
			v.Status = record.MoveCompleted
			break
		}
		size += record.AnswerBytes(m.Get(id))
		if v.Failure = moveTask(m, id, v.To); v.Failure != 0 {
			v.Status = record.MoveFailed
			break
		}
		moved++
	}
	v.Moved += int64(moved)
	v.NextAt = m.Stamp().T + 1 // others have their turn first
	if v.Rate > 0 {
		v.NextAt = m.Stamp().T + (int64(moved)*1000+int64(v.Rate)-1)/int64(v.Rate)
	}
	if r.Move = &v; v.Status != record.MoveRunning {
		m.types.findMoving()
	}
}

// moveTask cancels a waiting task and submits a copy of it to another type, or to the type of its
// origin if to is "". If it cannot, it changes nothing and returns why.
func moveTask(m *Machine, id uint64, to string) record.MoveFailure {
	t := m.Get(id)
	if from := t.Opts().Origin; to == "" {
		if from == nil {
			return record.MoveNoOrigin
		}
		to = from.Type
	}
	own, other := m.types.settingsOf(t.Type), m.types.settingsOf(to)
	switch {
	case t.Step() != nil:
		return record.MoveOfStep
	case *other == (record.TypeSettings{}) || (own.Queue == "") != (other.Queue == ""):
		return record.MoveNoType
	}
	copyTo(m, stopTask(m, id), to, nil, "moved from task ")
	return 0
}
