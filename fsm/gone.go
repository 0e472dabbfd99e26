package fsm

import (
	"hash/crc32"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/index"
	"github.com/claimq/claimq/fsm/record"
)

// Bounds for remembered removed tasks.
const (
	goneMS      = 10 * 60 * 1000 // by the lease clock, after the removal
	goneMax     = 1_000_000      // beyond it the oldest are forgotten
	goneTickMax = 1024           // tasks forgotten per tick
	// goneForgottenMax bounds the records forgotten for each new one. It is above 1, so that
	// no backlog builds up between ticks.
	goneForgottenMax = 2
)

// busyGone is the number of pages at the end that are never packed. One suffices: tasks are removed
// roughly in order of their ids, and a full page is packed at once.
const busyGone = 1

// rememberGone remembers a task that was just removed.
func (m *Machine) rememberGone(t *record.Task) {
	g := &record.Gone{
		Type:    t.Type,
		Status:  t.Status,
		Then:    t.Then,
		ForgetU: m.Stamp().U + goneMS,
	}
	if record.HoldsKey(t) {
		g.Key, g.KeyOfType, g.Same = t.Key, t.Opts().KeyOfType, sameHash(t.Type, t.Params, t.Payload)
	}
	if last := record.LastEnded(t.Log); last != nil {
		g.Token, g.Outcome = last.Token, last.Outcome
		if record.EndedByClaim(t) {
			g.WorkerID = last.WorkerID
		}
	}
	if t.Parent() != nil { // it was not ended by a claim of its own
		g.WorkerID, g.Token = t.WorkerID, t.Token
	}
	m.gone.Put(t.ID, g)
	m.indexGone(t.ID, g)
	m.gone.Rest(t.ID)
	for range goneForgottenMax {
		id, due := m.forgettingGone.Due(m.Stamp().U)
		if !due && m.gone.Len() <= m.goneMax {
			break
		}
		if !due {
			oldest, _ := m.forgettingGone.First()
			id = oldest.ID
		}
		m.forgetGone(id)
	}
}

// indexGone adds a record to everything derived. It returns what is wrong with the record,
// or "".
func (m *Machine) indexGone(id uint64, g *record.Gone) (problem string) {
	if m.Get(id) != nil {
		return "it is there all the same"
	}
	if name := g.KeyName(); name != "" {
		if _, other := m.goneOf(name); other != nil {
			return "its key is another's"
		}
		m.goneKeys.Add(name, id)
	}
	m.forgettingGone.Add(g.ForgetU, id)
	m.addRemembered(record.BytesOfGone(g))
	return ""
}

// forgetGone drops the record of a removed task.
func (m *Machine) forgetGone(id uint64) {
	m.excludeGone(id, m.gone.Get(id))
	m.gone.Remove(id)
}

// excludeGone removes a record from everything derived.
func (m *derived) excludeGone(id uint64, g *record.Gone) {
	if g.Key != "" {
		m.goneKeys.Remove(g.KeyName(), id)
	}
	m.forgettingGone.Remove(g.ForgetU, id)
	m.addRemembered(-record.BytesOfGone(g))
}

// forgetGoneDue drops a bounded number of records whose time has come. How far it gets
// affects no answer, because every lookup checks the time itself.
func (m *Machine) forgetGoneDue() {
	for range goneTickMax {
		id, ok := m.forgettingGone.Due(m.Stamp().U)
		if !ok {
			return
		}
		m.forgetGone(id)
	}
}

func (m *derived) resetGone() {
	m.forgettingGone = index.NewTimeline()
	m.goneKeys = index.NewNames()
}

// findGone returns the record of the removed task, or nil.
func (m *saved) findGone(id uint64) *record.Gone {
	g := m.gone.Get(id)
	if g == nil || m.overGone(g) {
		return nil
	}
	return g
}

// overGone reports whether the record's time is over.
func (m *saved) overGone(g *record.Gone) bool { return g.ForgetU <= m.Stamp().U }

// Removed returns what is remembered of a removed task, or nil: its id, type, key, status
// and last claim, and the follow-ups and claims of its completion.
func (m *Machine) Removed(id uint64) *record.Task {
	g := m.findGone(id)
	if g == nil {
		return nil
	}
	return g.Task(id)
}

// goneResult answers a call for a task that does not exist: how it ended if it was removed
// recently, else that it was not found.
func (m *saved) goneResult(id uint64) Result {
	g := m.findGone(id)
	if g == nil {
		return Result{Code: CodeTaskNotFound}
	}
	return Result{Code: endedCode(g.Status), Task: g.Task(id), Gone: true}
}

// heldGone is held for a task that does not exist. It recognizes the repeat of the call
// that ended the last claim.
func (m *saved) heldGone(h command.Hold, outcome record.Outcome) Result {
	result := m.goneResult(h.ID)
	if !result.Gone || outcome == record.OutcomeNone {
		return result
	}
	g := m.findGone(h.ID)
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

// forgetMax bounds how many records one Forget drops.
const forgetMax = 2048

// RememberedBytes estimates the memory of remembered removed tasks and claim requests.
func (m *Machine) RememberedBytes() int64 { return m.rememberedBytes }

func (m *Machine) forgetOldest(c command.Forget) Result {
	early := 0
	for n := 0; n < forgetMax && m.rememberedBytes > c.Bytes; n++ {
		gone, someGone := m.forgettingGone.First()
		request, someRequest := m.forgetting.First()
		at := gone.At
		switch {
		case someGone && (!someRequest || gone.At <= request.At):
			m.forgetGone(gone.ID)
		case someRequest:
			at = request.At
			m.forget(request.ID)
		default:
			return Result{Forgotten: early}
		}
		if at > m.Stamp().U {
			early++
		}
	}
	return Result{Forgotten: early}
}
