package fsm

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// callOfNext returns the claim as a call of its claim request, with what is remembered of it. A
// claim without a request id has the one of its batch, if it is an op of one that has one.
func callOfNext(m *Machine, c *command.ClaimNext) claimCall {
	call := claimCall{id: c.RequestID, place: c.RequestPlace}
	if call.id == "" {
		call.id, call.place = m.request, m.place
	}
	if call.id != "" {
		call.asked = askedOf(c.WorkerID, choiceOfNext(m, c))
		m.requests.find(&call, m.Stamp().U)
	}
	return call
}

// callOfTask is callOfNext for a claim by id, which is no op of a batch.
func callOfTask(m *Machine, c *command.ClaimTask) claimCall {
	call := claimCall{id: c.RequestID}
	if call.id != "" {
		call.asked = askedOf(c.WorkerID, choiceOfTask(m, c))
		m.requests.find(&call, m.Stamp().U)
	}
	return call
}

// repeatCall answers a call that was made before: with the first answer, or with a refusal if it
// asks for something else now. It claims nothing. known is false for a call that is new.
func repeatCall(m *Machine, call *claimCall) (result Result, known bool) {
	for call.expired != 0 {
		m.requests.forget(call.expired, &m.claims)
		m.requests.find(call, m.Stamp().U)
	}
	switch {
	case len(call.got) == 0:
		return Result{}, false
	case call.differs():
		return Result{Code: CodeInvalidRequest}, true
	}
	result = Result{Repeated: true, Claims: m.answers.claims.take(len(call.got))}
	size := m.answered
	for i := range call.got {
		result.Claims[i] = repeatClaim(m, call.got[i].ClaimRef, &size)
	}
	return result, true
}

// repeatClaim returns a claim of an earlier answer in its current state. If the task was
// removed there are only its id and the token, and no status. An ended claim comes without
// its data once the answer's size is used up, because tasks may have grown since the first
// answer. A live claim comes without its data beyond twice that size, which only a batch
// with many repeats of one request reaches.
func repeatClaim(m *Machine, c record.ClaimRef, size *int) Claim {
	t := m.Get(c.TaskID)
	if t == nil {
		return Claim{Task: &record.Task{ID: c.TaskID, Token: c.Token}, Token: c.Token}
	}
	claim := Claim{Token: c.Token, Live: t.Status == record.StatusClaimed && t.Token == c.Token}
	*size += record.AnswerBytes(t)
	shown := *t // its own memory, as Judge repeats under the read lock
	if *size > 2*answerBytesMax || !claim.Live && *size > answerBytesMax {
		shown.DropData()
	}
	claim.Task = &shown
	return claim
}

// begin chooses the record that will remember the call, before its first claim. known says that the
// record exists, with other calls; otherwise add creates it.
func (c *claimCall) begin(m *Machine) (known bool) {
	if c.id == "" || c.seq != 0 {
		return c.seq != 0
	}
	c.seq = m.header.NextRequest
	m.header.NextRequest++
	return false
}

// askedOf returns a hash of a call's worker and choice. It is saved, so it must never change. A
// fast hash of the worker suffices, because a client that knows the choice can name the worker as
// well.
func askedOf(workerID string, choice uint64) uint64 {
	return max(uint64(record.Hash(choice).Text(workerID)), 1)
}

// choiceOfNext hashes the fields that decide which tasks c claims. It caches the last hash,
// because most claims are like the one before.
func choiceOfNext(m *Machine, c *command.ClaimNext) uint64 {
	if m.lastChoice == 0 || !c.SameChoice(&m.lastClaim) {
		types := append(m.lastClaim.Types[:0], c.Types...) // those of c are reused
		m.lastClaim = *c
		m.lastClaim.Types = types
		m.choiceBuf = c.AppendChoice(m.choiceBuf[:0])
		m.lastChoice = choiceHash(m.choiceBuf)
	}
	return m.lastChoice
}

// choiceOfTask is choiceOfNext for a claim by id.
func choiceOfTask(m *Machine, c *command.ClaimTask) uint64 {
	m.choiceBuf = c.AppendChoice(m.choiceBuf[:0])
	return choiceHash(m.choiceBuf)
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
func (m *Machine) ByTypeKey(taskType, key string) *record.Task {
	return m.keyHolder(taskType, key, true)
}

// keyHolder returns the task that keeps another task of the type from having the key, or nil. If
// ofType, the key is wanted only among the tasks of that type and does not conflict with other
// types.
func (m *Machine) keyHolder(taskType, key string, ofType bool) *record.Task {
	if key == "" {
		return nil
	}
	if t := m.byKeyName(key); t != nil && (!ofType || t.Type == taskType) {
		return t
	}
	if !m.keysOfTypes {
		return nil
	}
	return m.byKeyName(record.KeyName(taskType, key, true))
}

// goneKeyHolder is keyHolder for remembered removed tasks. find looks one up by the name of its
// key: goneTasks.named, or goneTasks.namedOrForget in Apply.
func (m *Machine) goneKeyHolder(taskType, key string, ofType bool, find goneFinder) (id uint64, g *record.Gone) {
	if key == "" {
		return 0, nil
	}
	now := m.Stamp()
	if id, g = find(&m.gone, key, now); g != nil && (!ofType || g.Type == taskType) {
		return id, g
	}
	if !m.gone.keysOfTypes {
		return 0, nil
	}
	return find(&m.gone, record.KeyName(taskType, key, true), now)
}

// goneFinder returns the remembered removed task whose key has this name, or nil, at that time.
type goneFinder func(of *goneTasks, name string, now record.Stamp) (id uint64, g *record.Gone)

// refsOf returns the ids and tokens of the claims, or nil.
func refsOf(claims []Claim) []record.ClaimRef {
	if len(claims) == 0 {
		return nil
	}
	refs := make([]record.ClaimRef, len(claims))
	for i := range claims {
		refs[i] = record.ClaimRef{TaskID: claims[i].Task.ID, Token: claims[i].Token}
	}
	return refs
}

// keyTaken returns the refusal if the task to retry cannot have its key: another task has
// it, or a removed one that is remembered so that its submit can be repeated. The refusal
// contains the state's own task.
func keyTaken(m *Machine, t *record.Task, find goneFinder) (refusal Result, refused bool) {
	ofType := t.Opts().KeyOfType
	if t.KeyUntil() != 0 { // a retry does not take its key again
		return Result{}, false
	}
	if holder := m.keyHolder(t.Type, t.Key, ofType); holder != nil {
		if holder.ID == t.ID {
			return Result{}, false
		}
		return Result{Code: CodeKeyTaken, Task: holder}, true
	}
	if id, g := m.goneKeyHolder(t.Type, t.Key, ofType, find); g != nil {
		return Result{Code: CodeKeyTaken, Task: g.Task(id), Gone: true}, true
	}
	return Result{}, false
}

// repeatThen adds the follow-ups and claims of the first answer to a repeated one, in their
// current state. A task that was removed has only its id, and the token of its claim.
func repeatThen(m *Machine, result Result) Result {
	then := result.Task.Then
	if then == nil {
		return result
	}
	for _, f := range then.Submitted {
		result.Submitted = append(result.Submitted, repeatFollowUp(m, f))
	}
	size := record.AnswerBytes(result.Task)
	for _, c := range then.Claims {
		result.Claims = append(result.Claims, repeatClaim(m, c, &size))
	}
	return result
}

func repeatFollowUp(m *Machine, f record.FollowUp) Submitted {
	if t := m.Get(f.ID); t != nil {
		shown := *t
		return Submitted{Task: &shown, Created: f.Created, Replaced: f.Replaced}
	}
	return Submitted{Task: &record.Task{ID: f.ID}, Created: f.Created, Replaced: f.Replaced}
}

// tellsAgain reports whether tellAgain would record anything.
func tellsAgain(m *Machine, then *record.Then) bool {
	return then != nil && slices.ContainsFunc(then.Claims, func(c record.ClaimRef) bool { return toldOnce(m, c) })
}

// toldOnce reports whether the claim is live and only its first answer has reported it.
func toldOnce(m *Machine, c record.ClaimRef) bool {
	t := m.Get(c.TaskID)
	return t != nil && t.Token == c.Token && t.LeaseSeq == command.FirstAnswer
}
