package fsm

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// Bounds for remembered claim requests.
const (
	rememberMS    = 10 * 60 * 1000 // by the lease clock, after the last claim ended
	rememberedMax = 1_000_000      // in all requests
	forgetTickMax = 1024           // requests forgotten per tick
)

// busyRequests is the number of pages at the end that are not packed, because most of their requests
// have live claims.
const busyRequests = 16

// findRequest returns the request remembered under the id, and its sequence number. A
// request whose time has come counts as forgotten, even before a tick drops it; then only
// seq is returned.
func (m *Machine) findRequest(id string) (r *record.Request, seq uint64) {
	if id == "" {
		return nil, 0
	}
	r, seq = m.requestOf(id)
	if r == nil {
		return nil, 0
	}
	if r.Live == 0 && r.ForgetU <= m.Stamp().U {
		return nil, seq
	}
	return r, seq
}

// requestOf returns the request remembered under the id, or nil, and its sequence number.
func (m *Machine) requestOf(id string) (r *record.Request, seq uint64) {
	seq = m.requestIDs.Get(id, func(seq uint64) bool {
		r = m.requests.Get(seq)
		return r.ID == id
	})
	if seq == 0 {
		return nil, 0
	}
	return r, seq
}

// repeatRequest answers a claim whose request id is known: with the first answer, or with a
// refusal if the request differs. It claims nothing.
func (m *Machine) repeatRequest(id, workerID string, choice uint64) (result Result, known bool) {
	r, seq := m.findRequest(id)
	if r == nil {
		if seq != 0 {
			m.forget(seq)
		}
		return Result{}, false
	}
	if r.WorkerID != workerID || r.Choice != choice {
		return Result{Code: CodeInvalidRequest}, true
	}
	result = Result{Repeated: true, Claims: m.answers.claims.take(len(r.Claims))}
	size := m.answered
	for i, c := range r.Claims {
		result.Claims[i] = m.repeatClaim(c, &size)
	}
	return result, true
}

// repeatClaim returns a claim of an earlier answer in its current state. If the task was
// removed there are only its id and the token, and no status. An ended claim comes without
// its data once the answer's size is used up, because tasks may have grown since the first
// answer. A live claim comes without its data beyond twice that size, which only a batch
// with many repeats of one request reaches.
func (m *saved) repeatClaim(c record.ClaimRef, size *int) Claim {
	t := m.Get(c.TaskID)
	if t == nil {
		return Claim{Task: record.Task{ID: c.TaskID, Token: c.Token}, Token: c.Token}
	}
	claim := Claim{Task: *t, Token: c.Token, Live: t.Status == record.StatusClaimed && t.Token == c.Token}
	*size += record.AnswerBytes(t)
	if *size > 2*answerBytesMax || !claim.Live && *size > answerBytesMax {
		claim.Task.Bare()
	}
	return claim
}

// nextRequest assigns a sequence number to a request, or returns 0 if it has no id and is
// not remembered.
func (m *saved) nextRequest(id string) uint64 {
	if id == "" {
		return 0
	}
	seq := m.header.NextRequest
	m.header.NextRequest++
	return seq
}

// remember stores the answer of a request under its sequence number, unless that is 0. It
// drops the oldest requests if there are too many.
func (m *Machine) remember(seq uint64, id, workerID string, choice uint64, claims []Claim) {
	if seq == 0 {
		return
	}
	r := &record.Request{ID: id, WorkerID: workerID, Choice: choice, Live: int32(len(claims)), Claims: refsOf(claims)}
	m.requests.Put(seq, r)
	m.requestIDs.Add(id, seq)
	m.remembered += len(claims)
	m.addRemembered(record.BytesOfRequest(r))
	for m.remembered > m.rememberedMax {
		oldest, _ := m.requests.First()
		m.forget(oldest)
	}
}

// claimEnded counts that a claim of the request has ended.
func (m *Machine) claimEnded(seq uint64) {
	r := m.requests.Edit(seq)
	r.Live--
	if r.Live == 0 {
		m.addRemembered(record.BytesOfRequest(r) - record.BytesOfLiveRequest(r))
		r.ForgetU = m.Stamp().U + rememberMS
		m.forgetting.Add(r.ForgetU, seq)
		m.requests.Rest(seq)
	}
}

// forget drops a request, even one with live claims.
func (m *Machine) forget(seq uint64) {
	m.excludeRequest(seq, m.requests.Get(seq))
	m.requests.Remove(seq)
}

// excludeRequest removes a request from everything derived.
func (m *derived) excludeRequest(seq uint64, r *record.Request) {
	if r.Live == 0 {
		m.forgetting.Remove(r.ForgetU, seq)
	} else {
		for _, c := range r.Claims {
			if ref, live := m.claims.Get(c.Token); live {
				ref.request = 0
				m.claims.Set(c.Token, ref)
			}
		}
	}
	m.requestIDs.Remove(r.ID, seq)
	m.remembered -= len(r.Claims)
	m.addRemembered(-record.BytesOfRequest(r))
}

// forgetDue drops a bounded number of requests whose time has come. How far it gets affects
// no answer, because findRequest checks the time itself.
func (m *Machine) forgetDue() {
	for range forgetTickMax {
		seq, due := m.forgetting.Due(m.Stamp().U)
		if !due {
			return
		}
		m.forget(seq)
	}
}

// choiceOfNext hashes the fields that decide which tasks c claims. It caches the last hash,
// because most claims are like the one before.
func (m *Machine) choiceOfNext(c command.ClaimNext) uint64 {
	m.choosing = c.AppendChoice(m.choosing[:0])
	if !bytes.Equal(m.choosing, m.chose) {
		m.chose = append(m.chose[:0], m.choosing...)
		m.choice = choiceHash(m.chose)
	}
	return m.choice
}

// choiceOfTask is choiceOfNext for a claim by id.
func (m *Machine) choiceOfTask(c command.ClaimTask) uint64 {
	m.choosing = c.AppendChoice(m.choosing[:0])
	return choiceHash(m.choosing)
}

// choiceHash returns the first 64 bits of the SHA-256 of a command's kind and choice,
// encoded as in the log. Saved requests contain it, so it must never change. It is
// cryptographic so that a client cannot find another choice with the hash of someone else's
// request.
func choiceHash(choice []byte) uint64 {
	sum := sha256.Sum256(choice)
	return binary.BigEndian.Uint64(sum[:8])
}

// An idempotency key is unique among all tasks or, if its task has KeyOfType, among those
// of its type. The indexes use a name that tells the two apart.

// ByKey returns the task that has the key among all tasks, or nil. No task has "".
func (m *Machine) ByKey(key string) *record.Task {
	if key == "" {
		return nil
	}
	return m.byKeyName(key)
}

// ByTypeKey returns the task of the type that has the key, among all tasks or among those
// of the type, or nil.
func (m *Machine) ByTypeKey(taskType, key string) *record.Task { return m.holder(taskType, key, true) }

// byKeyName returns the task whose key has this name in the indexes, or nil.
func (m *Machine) byKeyName(name string) (t *record.Task) {
	id := m.keys.Get(name, func(id uint64) bool {
		t = m.Get(id)
		return t.KeyName() == name
	})
	if id == 0 {
		return nil
	}
	return t
}

// holder returns the task that keeps another task of the type from having the key, or nil.
// If ofType, the key is wanted only among the tasks of that type and does not conflict with
// other types.
func (m *Machine) holder(taskType, key string, ofType bool) *record.Task {
	if key == "" {
		return nil
	}
	if t := m.byKeyName(key); t != nil && (!ofType || t.Type == taskType) {
		return t
	}
	return m.byKeyName(record.KeyName(taskType, key, true))
}

// goneHolder is holder for remembered removed tasks. find looks one up by the name of its
// key: goneByKeyName, or forgettingGoneByKeyName in Apply.
func goneHolder(taskType, key string, ofType bool, find goneFinder) (id uint64, g *record.Gone) {
	if key == "" {
		return 0, nil
	}
	if id, g = find(key); g != nil && (!ofType || g.Type == taskType) {
		return id, g
	}
	return find(record.KeyName(taskType, key, true))
}

// goneFinder returns the remembered removed task whose key has this name, or nil.
type goneFinder func(name string) (id uint64, g *record.Gone)

// goneByKeyName is a goneFinder that changes nothing.
func (m *Machine) goneByKeyName(name string) (id uint64, g *record.Gone) {
	if id, g = m.goneOf(name); g == nil || m.overGone(g) {
		return 0, nil
	}
	return id, g
}

// forgettingGoneByKeyName is a goneFinder for Apply. It forgets a task whose time is over,
// so that its key can be given to another.
func (m *Machine) forgettingGoneByKeyName(name string) (id uint64, g *record.Gone) {
	if id, g = m.goneOf(name); g != nil && m.overGone(g) {
		m.forgetGone(id)
		return 0, nil
	}
	return id, g
}

// goneOf returns the remembered removed task whose key has this name, or nil. It does not
// check the time.
func (m *Machine) goneOf(name string) (id uint64, g *record.Gone) {
	id = m.goneKeys.Get(name, func(id uint64) bool {
		g = m.gone.Get(id)
		return g.KeyName() == name
	})
	if id == 0 {
		return 0, nil
	}
	return id, g
}
