package fsm

import (
	"hash/crc32"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// evictMax bounds how many tasks one Evict removes. The steps of the last one come on top.
const evictMax = 1024

// removeLeaving removes the tasks that the command ended and that are not kept. A task that
// is live again, because the command was undone, stays.
func removeLeaving(m *Machine) {
	if len(m.ends.leaving) == 0 {
		return
	}
	leaving := m.ends.leaving
	m.ends.leaving = nil
	for _, id := range leaving {
		if t := m.Get(id); t != nil && t.RemoveAt != 0 && t.RemoveAt <= m.Stamp().T {
			removeEnded(m, id)
		}
	}
}

// removeEnded removes an ended task, a parent with its steps, and remembers that they
// existed.
func removeEnded(m *Machine, id uint64) {
	t := lastLook(m, id)
	removeOne(m, t)
	if t.Parent() == nil {
		return
	}
	plan := t.Parent().Plan
	for place := range plan.Steps {
		removeOne(m, m.Get(plan.IDOf(id, place)))
	}
}

// lastLook returns a task that is about to be removed. It is valid until the next lastLook.
func lastLook(m *Machine, id uint64) *record.Task {
	kept := m.tasks.Look(id)
	if kept.Record != nil {
		return kept.Record
	}
	return record.EncodedTasks{Names: &m.types}.UnpackInto(&m.removing, kept.Packed)
}

// removeOne removes a task that m.Get or lastLook has returned.
func removeOne(m *Machine, t *record.Task) {
	drop(m, t)
	m.gone.add(t.ID, goneOf(t, m.Stamp()), m.Stamp())
	m.removed++
}

// evict removes a bounded number of the oldest ended tasks until the rest take no more than
// c.Bytes.
func evict(m *Machine, c command.Evict) Result {
	start := m.removed
	for m.removed-start < evictMax && m.EndedBytes() > c.Bytes {
		oldest, ok := m.ends.evictable()
		if !ok {
			break
		}
		removeEnded(m, oldest)
	}
	return Result{Evicted: m.removed - start}
}

// forgetMax bounds how many records one Forget drops.
const forgetMax = 2048

// Removed returns what is remembered of a removed task, or nil: its id, type, key, status
// and last claim, and the follow-ups and claims of its completion.
func (m *Machine) Removed(id uint64) *record.Task {
	g := m.gone.find(id, m.Stamp().U)
	if g == nil {
		return nil
	}
	return g.Task(id)
}

// goneResult answers a call for a task that does not exist: how it ended if it was removed
// recently, else that it was not found.
func goneResult(m *Machine, id uint64) Result {
	g := m.gone.find(id, m.Stamp().U)
	if g == nil {
		return Result{Code: CodeTaskNotFound}
	}
	return Result{Code: endedCode(g.Status), Task: g.Task(id), Gone: true}
}

// heldGone is held for a task that does not exist. It recognizes the repeat of the call
// that ended the last claim.
func heldGone(m *Machine, h command.Hold, outcome record.Outcome) Result {
	result := goneResult(m, h.ID)
	if !result.Gone || outcome == record.OutcomeNone {
		return result
	}
	g := m.gone.find(h.ID, m.Stamp().U)
	sameClaim := h.Token == g.Token
	if h.Token == 0 {
		sameClaim = h.WorkerID == g.WorkerID
	}
	if g.Outcome == outcome && sameClaim {
		result.Code, result.Repeated = "", true
	}
	return result
}

// sameHash returns a hash of type and parameters. It is saved, so it must never change. A
// fast CRC of the parameters suffices, because it only tells a mistaken submit from a
// repeat.
func sameHash(taskType string, params, payload []byte) uint64 {
	table := crc32.MakeTable(crc32.Castagnoli)
	h := record.HashStart.Text(taskType).Byte(0)
	h = h.Number(uint64(len(params))).Number(uint64(crc32.Checksum(params, table)))
	h = h.Number(uint64(len(payload))).Number(uint64(crc32.Checksum(payload, table)))
	return uint64(h)
}

// forgetOldest forgets removed tasks and claim requests, those due first, until they take no more
// than c.Bytes. Requests with live claims stay.
func forgetOldest(m *Machine, c command.Forget) Result {
	early := 0
	for n := 0; n < forgetMax && m.RememberedBytes() > c.Bytes; n++ {
		gone, someGone := m.gone.forgetting.First()
		request, someRequest := m.requests.forgetting.First()
		at := gone.At
		switch {
		case someGone && (!someRequest || gone.At <= request.At):
			m.gone.forget(gone.ID)
		case someRequest:
			at = request.At
			m.requests.forget(request.ID, &m.claims)
		default:
			return Result{Forgotten: early}
		}
		if at > m.Stamp().U {
			early++
		}
	}
	return Result{Forgotten: early}
}

// goneOf returns what is remembered of a task that is removed now, at least for as long as its key
// stays taken.
func goneOf(t *record.Task, now record.Stamp) *record.Gone {
	g := &record.Gone{
		Type:    t.Type,
		Status:  t.Status,
		Then:    t.Then,
		ForgetU: now.U + goneMS,
	}
	if until := t.KeyUntil(); record.HoldsKey(t) && !windowOver(until, now.T) {
		g.KeyUntil = until
		g.ForgetU = max(g.ForgetU, now.U+until-now.T)
		g.Key, g.KeyOfType, g.Same = t.Key, t.Opts().KeyOfType, sameHash(t.Type, t.Params, t.Payload)
	}
	if last := t.LastEnded(); last.Outcome != record.OutcomeNone {
		g.Token, g.Outcome = last.Token, last.Outcome
		if record.EndedByClaim(t) {
			g.WorkerID = last.WorkerID
		}
	}
	if t.Parent() != nil { // it was not ended by its own claim
		g.WorkerID, g.Token = t.WorkerID, t.Token
	}
	return g
}
