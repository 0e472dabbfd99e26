package fsm

import (
	"hash/crc32"

	"github.com/claimq/claimq/fsm/index"
)

// Bounds of what is remembered of removed tasks.
const (
	goneMS      = 10 * 60 * 1000 // by the lease clock, after the removal
	goneMax     = 1_000_000      // tasks; the oldest make room
	goneTickMax = 1024           // tasks that one tick forgets
	goneBytes   = 75             // what one takes beside its strings
	// goneForgottenMax is how many are forgotten for one that is remembered:
	// more than one, so that no heap of them builds up between ticks.
	goneForgottenMax = 2
)

// gone is what is remembered of a task that retention or eviction removed, so
// that repeats still get their answer. It is saved under the task's id.
type gone struct {
	// Key is the task's idempotency key, which stays taken for as long; "" if it
	// was free again when the task ended.
	Key string
	// KeyOfType says that it is taken among the tasks of the type alone.
	KeyOfType bool
	Type      string // "" of one that was removed before this was remembered
	Status    Status // completed, failed or cancelled
	// Token and Outcome are of the last claim, zero if there was none. WorkerID
	// is who had it, "" if the task did not end with it. Of a parent, which has no
	// Outcome, WorkerID and Token are of the processor that ended it.
	WorkerID string
	Token    uint64
	Outcome  Outcome
	Same     uint64 // hash of type and parameters; 0 without a key
	Then     *Then
	ForgetU  int64 // when it is forgotten, by the lease clock
}

// restingGone is how all that is remembered of removed tasks is kept: as the bytes of
// their records. Hardly ever anybody asks for one.
type restingGone struct{}

// busyGone is how many pages at the end have none that rests: tasks go about in the
// order of their ids, and a page that is full rests at once.
const busyGone = 1

// Rests reports whether it is not too large.
func (restingGone) Rests(g *gone) bool {
	return len(g.Key)+len(g.Type)+len(g.WorkerID)+bytesOfThen(g.Then) <= restingMax
}

// Pack appends the record.
func (restingGone) Pack(b []byte, id uint64, g *gone) []byte { return appendGoneRecord(b, id, g) }

// Unpack reads the record.
func (restingGone) Unpack(b []byte, _ bool) *gone {
	r := fieldsOf(b)
	_, g := decodeGoneRecord(&r, nil)
	mustUnpack(recordGone, r.Err)
	return g
}

// rememberGone remembers the ended task, which was just removed.
func (m *Machine) rememberGone(t *Task) {
	g := &gone{
		Type:    t.Type,
		Status:  t.Status,
		Then:    t.Then,
		ForgetU: m.header.Stamp.U + goneMS,
	}
	if holdsKey(t) {
		g.Key, g.KeyOfType, g.Same = t.Key, t.options().KeyOfType, sameHash(t.Type, t.Params, t.Payload)
	}
	if last := lastEnded(t.Log); last != nil {
		g.Token, g.Outcome = last.Token, last.Outcome
		if endedByClaim(t) {
			g.WorkerID = last.WorkerID
		}
	}
	if t.Parent() != nil { // no claim of its own ended it
		g.WorkerID, g.Token = t.WorkerID, t.Token
	}
	m.gone.Put(t.ID, g)
	m.indexGone(t.ID, g)
	m.gone.Rest(t.ID)
	for range goneForgottenMax {
		id, due := m.forgettingGone.Due(m.header.Stamp.U)
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

// indexGone adds a record to what is derived. It returns what is wrong with it,
// "" if nothing is.
func (m *Machine) indexGone(id uint64, g *gone) (problem string) {
	if m.tasks.Get(id) != nil {
		return "it is there all the same"
	}
	if name := g.keyName(); name != "" {
		if _, other := m.goneOf(name); other != nil {
			return "its key is another's"
		}
		m.goneKeys.Add(name, id)
	}
	m.forgettingGone.Add(g.ForgetU, id)
	m.addRemembered(bytesOfGone(g))
	return ""
}

// forgetGone forgets a removed task.
func (m *Machine) forgetGone(id uint64) {
	m.excludeGone(id, m.gone.Get(id))
	m.gone.Remove(id)
}

// excludeGone takes a record out of everything derived.
func (m *derived) excludeGone(id uint64, g *gone) {
	if g.Key != "" {
		m.goneKeys.Remove(g.keyName(), id)
	}
	m.forgettingGone.Remove(g.ForgetU, id)
	m.addRemembered(-bytesOfGone(g))
}

// forgetGoneDue forgets the removed tasks whose time has come, a bounded
// number. Which ones a tick reaches changes no answer: who looks one up goes by
// the time alone.
func (m *Machine) forgetGoneDue() {
	for range goneTickMax {
		id, ok := m.forgettingGone.Due(m.header.Stamp.U)
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

// findGone returns what is remembered of the removed task, nil if nothing is.
func (m *saved) findGone(id uint64) *gone {
	g := m.gone.Get(id)
	if g == nil || m.overGone(g) {
		return nil
	}
	return g
}

// overGone reports whether the time has come to forget it.
func (m *saved) overGone(g *gone) bool { return g.ForgetU <= m.header.Stamp.U }

// Removed returns what is remembered of a task that was removed since it ended, nil if
// nothing is: its id, type, key, status and last claim, and what it did beside.
func (m *Machine) Removed(id uint64) *Task {
	g := m.findGone(id)
	if g == nil {
		return nil
	}
	return g.task(id)
}

// task returns what is known of the removed task.
func (g *gone) task(id uint64) *Task {
	t := &Task{ID: id, Type: g.Type, Key: g.Key, Status: g.Status, Token: g.Token, Then: g.Then}
	if g.Status != StatusCancelled {
		t.WorkerID = g.WorkerID
	}
	return t
}

// goneResult answers a call for a task that is not there: why nothing more can
// happen to it if it was removed, else that there is none.
func (m *saved) goneResult(id uint64) Result {
	g := m.findGone(id)
	if g == nil {
		return Result{Code: CodeTaskNotFound}
	}
	return Result{Code: endedCode(g.Status), Task: g.task(id), Gone: true}
}

// heldGone is held of a task that is not there: a call that ended its last claim
// is repeated.
func (m *saved) heldGone(h Hold, outcome Outcome) Result {
	result := m.goneResult(h.ID)
	if !result.Gone || outcome == OutcomeNone {
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

// bytesOfGone estimates the memory that the record takes.
func bytesOfGone(g *gone) int64 {
	n := goneBytes + len(g.Type) + len(g.WorkerID) + bytesOfThen(g.Then)
	if g.Key != "" {
		n += keyBytes + len(g.Key)
	}
	return int64(n)
}

// sameHash returns a hash of type and parameters. It is saved, so it never
// changes. A CRC of the parameters is enough, and quick: it only tells a
// mistaken submit from a repeat.
func sameHash(taskType string, params, payload []byte) uint64 {
	table := crc32.MakeTable(crc32.Castagnoli)
	h := fnvOffset.string(taskType).byte(0)
	h = h.uint64(uint64(len(params))).uint64(uint64(crc32.Checksum(params, table)))
	h = h.uint64(uint64(len(payload))).uint64(uint64(crc32.Checksum(payload, table)))
	return uint64(h)
}
