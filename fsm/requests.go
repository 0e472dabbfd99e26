package fsm

import (
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
	if r.Live == 0 && r.ForgetU <= m.header.Stamp.U {
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
	t := m.tasks.Get(c.TaskID)
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
		r.ForgetU = m.header.Stamp.U + rememberMS
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
		seq, due := m.forgetting.Due(m.header.Stamp.U)
		if !due {
			return
		}
		m.forget(seq)
	}
}

// choiceOfNext hashes what chooses the tasks of c.
func (m *Machine) choiceOfNext(c command.ClaimNext) uint64 {
	m.choosing = c.AppendChoice(m.choosing[:0])
	return choiceHash(m.choosing)
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
