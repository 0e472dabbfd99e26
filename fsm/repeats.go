package fsm

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// Bounds of what is remembered of claim requests.
const (
	rememberMS    = 10 * 60 * 1000 // by the lease clock, after the last claim ended
	rememberedMax = 1_000_000      // claims in all requests
	forgetTickMax = 1024           // requests that one tick forgets
)

// busyRequests is how many pages at the end have none that rests: most of them have
// claims that live.
const busyRequests = 16

// findRequest returns the request that is remembered under the id, and its
// sequence number. One whose time has come counts as forgotten, whether or not
// a tick has been there.
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

// requestOf returns the request that is remembered under the id, nil if none is, and its
// sequence number.
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

// repeatRequest answers a claim whose request id is known: with the first
// answer, or with a refusal if it is another request. It takes nothing.
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

// repeatClaim returns a claim of an earlier answer as it is now. Of a task that
// was deleted there is only the id, the token, and no status. An ended claim
// comes bare once the answer's size is used up: tasks may have grown since the
// first answer. One that lives comes bare past twice the size, which only a
// batch reaches that repeats one request many times.
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

// nextRequest takes a sequence number for a request that is to be remembered:
// 0 if it has no id.
func (m *saved) nextRequest(id string) uint64 {
	if id == "" {
		return 0
	}
	seq := m.header.NextRequest
	m.header.NextRequest++
	return seq
}

// remember keeps the answer of a request under its sequence number, if not 0.
// The oldest requests make room.
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

// claimEnded tells the request that one of its claims has ended.
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

// forget forgets a request, whether or not claims of it are live.
func (m *Machine) forget(seq uint64) {
	m.excludeRequest(seq, m.requests.Get(seq))
	m.requests.Remove(seq)
}

// excludeRequest takes a request out of everything derived.
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

// forgetDue forgets the requests whose time has come, a bounded number. Which
// ones a tick reaches changes no answer: findRequest goes by the time alone.
func (m *Machine) forgetDue() {
	for range forgetTickMax {
		seq, due := m.forgetting.Due(m.Stamp().U)
		if !due {
			return
		}
		m.forget(seq)
	}
}

// choiceOfNext hashes what chooses the tasks of c. Most claims choose as the one before.
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

// choiceHash returns the first 64 bits of the SHA-256 of a command's kind and what it
// chooses by, as the log has it. Requests are saved with it, so it never changes:
// nobody finds another choice with the hash of a request that is not theirs.
func choiceHash(choice []byte) uint64 {
	sum := sha256.Sum256(choice)
	return binary.BigEndian.Uint64(sum[:8])
}

// An idempotency key is taken among all tasks, or, if its task has KeyOfType, among
// those of its type alone. The indexes know it by a name that tells the two apart.

// ByKey returns the task that has the key among all tasks, nil if none has. None
// has "".
func (m *Machine) ByKey(key string) *record.Task {
	if key == "" {
		return nil
	}
	return m.byKeyName(key)
}

// ByTypeKey returns the task of the type that has the key, among all tasks or among
// those of the type; nil if none has.
func (m *Machine) ByTypeKey(taskType, key string) *record.Task { return m.holder(taskType, key, true) }

// byKeyName returns the task whose key is known by the name, nil if none has it.
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

// holder returns the task because of which no other one of that type can have the
// key, nil if there is none. A key that is to be taken among those of the type alone
// (ofType) does not meet tasks of other types.
func (m *Machine) holder(taskType, key string, ofType bool) *record.Task {
	if key == "" {
		return nil
	}
	if t := m.byKeyName(key); t != nil && (!ofType || t.Type == taskType) {
		return t
	}
	return m.byKeyName(record.KeyName(taskType, key, true))
}

// goneHolder is holder of removed tasks that are remembered, each of which find finds by
// the name of its key: goneByKeyName, or forgettingGoneByKeyName in Apply.
func goneHolder(taskType, key string, ofType bool, find goneFinder) (id uint64, g *record.Gone) {
	if key == "" {
		return 0, nil
	}
	if id, g = find(key); g != nil && (!ofType || g.Type == taskType) {
		return id, g
	}
	return find(record.KeyName(taskType, key, true))
}

// goneFinder returns what is remembered of a removed task whose key is known by the name,
// nil if nothing is.
type goneFinder func(name string) (id uint64, g *record.Gone)

// goneByKeyName is a goneFinder that changes nothing.
func (m *Machine) goneByKeyName(name string) (id uint64, g *record.Gone) {
	if id, g = m.goneOf(name); g == nil || m.overGone(g) {
		return 0, nil
	}
	return id, g
}

// forgettingGoneByKeyName is a goneFinder for Apply: it forgets a task whose time has come,
// as the key is about to be given to another.
func (m *Machine) forgettingGoneByKeyName(name string) (id uint64, g *record.Gone) {
	if id, g = m.goneOf(name); g != nil && m.overGone(g) {
		m.forgetGone(id)
		return 0, nil
	}
	return id, g
}

// goneOf returns what is remembered of a removed task whose key is known by the name,
// also if its time has come, nil if nothing is.
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
