package exchange

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/port"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

const (
	// AnswerFreeBytes is what each answer may take without that: most are smaller,
	// and go on when large ones are refused.
	AnswerFreeBytes = 32 << 10
	// taskRoom is what a task takes in an answer beside its users' own data.
	taskRoom = 512
	// resultRoom is what a result takes in an answer of many that tells of no task but its
	// id and status.
	resultRoom = 128
	// KeptBytes bounds the buffer for answers that a connection keeps while it waits for its
	// next request.
	KeptBytes = 32 << 10
	// KeptBodyBytes is KeptBytes of bodies: most are smaller, and who sends a larger one now and
	// then is to hold no memory in between.
	KeptBodyBytes = 4 << 10
)

// writtenConn is a connection of the peer port, which tells when an answer is out
// of memory.
type writtenConn interface {
	// OnWritten has fn called once the answer is written, or never will be.
	OnWritten(fn func())
}

// more returns how much an answer of n bytes takes beyond what its request has.
func (r *Request) more(n int) int64 {
	if n <= AnswerFreeBytes {
		return 0
	}
	return max(int64(n)-r.room, 0)
}

// RoomFor takes room for an answer of n bytes before it is made; false: there is
// none, and it is refused.
func (r *Request) RoomFor(n int) bool {
	more := r.more(n)
	if more > 0 && !r.Server.Port.Answers.Take(more) {
		r.Refuse(r.Server.Port.Answers.Full())
		return false
	}
	r.room += more
	return true
}

// roomAhead waits for room for the result of cmd before that is proposed: afterwards it cannot
// be refused, and keeps its memory for as long as the answer waits for its own room. false:
// there was none, nothing was done, and it is refused.
func (r *Request) roomAhead(cmd command.Command) bool {
	if _, submits := cmd.(command.Submit); submits {
		return true // its result has no tasks of its own
	}
	n := int64(command.AboutOf(cmd).Changes) * taskRoom
	if n <= AnswerFreeBytes {
		return true
	}
	ctx, cancel := context.WithTimeout(r.Wait(), r.Server.Cfg.Wait/2) // the rest is for the log
	defer cancel()
	if !r.Server.Port.Results.Wait(ctx, n) {
		r.Refuse(r.Server.Port.Answers.Full())
		return false
	}
	r.ahead = n
	return true
}

// roomForResult waits for room for the answer about what was done: it can be
// refused no more. false: there was none, and the answer says that the outcome is
// unknown; what nobody can ask for again is released.
func (r *Request) roomForResult(res *fsm.Result) bool {
	more := r.more(resultBytes(res))
	if more > 0 && !r.Server.Port.Answers.Take(more) && !r.Server.Port.Answers.Wait(r.Wait(), more) {
		r.GiveBack()
		r.Refuse(refuse.Because(wire.CodeOutcomeUnknown))
		return false
	}
	r.room += more
	return true
}

// errAnswersFull is returned for a leader's answer that there is no room for.
var errAnswersFull = errors.New("answers that were not read yet take as much memory as they may")

// roomForLeaders takes room for a leader's answer of n bytes before it is read here.
// That about what was done waits for room until ctx ends. Errors: errAnswersFull.
func (r *Request) roomForLeaders(ctx context.Context, n int) error {
	more := r.more(n)
	if more > 0 && !r.Server.Port.Answers.Take(more) && (!r.Target.call.Has(Mutation) || !r.Server.Port.Answers.Wait(ctx, more)) {
		return errAnswersFull
	}
	r.room += more
	return nil
}

// countAnswer counts the whole answer, which is made, until it is written. One that
// there is no room for is dropped, and says so.
func (r *Request) countAnswer() {
	resp := &r.HTTP.Response
	if !resp.IsBodyStream() && !r.shared {
		r.giveSurplus(len(resp.Body()))
		more := r.more(len(resp.Body()))
		if more > 0 && !r.Server.Port.Answers.Take(more) {
			more = 0
			r.ResetAnswer()
			if r.Target.call.Has(Mutation) {
				r.GiveBack()
				r.Refuse(refuse.Because(wire.CodeOutcomeUnknown))
			} else {
				r.Refuse(r.Server.Port.Answers.Full())
			}
		}
		r.room += more
	}
	room, s := r.room, r.Server
	if r.room = 0; room == 0 {
		return
	}
	switch conn := r.HTTP.Conn().(type) {
	case *port.Conn:
		conn.HoldAnswer(room)
	case writtenConn:
		conn.OnWritten(func() { s.Port.Answers.Give(room) })
	default:
		s.Port.Answers.Give(room)
	}
}

// giveSurplus gives back the room that was for what an answer of n bytes was made of.
func (r *Request) giveSurplus(n int) {
	if n <= AnswerFreeBytes {
		n = 0
	}
	if surplus := r.room - int64(n); surplus > 0 {
		r.room -= surplus
		r.Server.Port.Answers.Give(surplus)
	}
}

// DataBytes is what the users' own data of a task takes in an answer.
func DataBytes(t *fsm.Task, params, result bool) int {
	n := taskRoom + len(t.Error) + len(t.Progress) + len(t.Key) + len(t.Opts().Group)
	for _, l := range t.Opts().Labels {
		n += len(l.Name) + len(l.Value) + len(`"":"",`)
	}
	if params {
		n += len(t.Params) + len(t.Payload)/3*4
	}
	if result {
		n += len(t.Result) + len(t.ResultPayload)/3*4
	}
	return n
}

// resultBytes is about what the answer to a command takes.
func resultBytes(res *fsm.Result) int {
	n := 0
	if res.Task != nil {
		n += DataBytes(res.Task, true, true)
	}
	for i := range res.Claims {
		n += DataBytes(&res.Claims[i].Task, true, true)
	}
	for i := range res.Submitted {
		n += DataBytes(res.Submitted[i].Task, false, false)
	}
	for i := range res.Results {
		n += resultBytes(&res.Results[i])
	}
	return n
}

// BodyOf is Body with room for what a result has claimed, which is most of an answer that has
// it: a buffer of many tasks that grew as they were appended would be copied several times.
func (r *Request) BodyOf(res *fsm.Result) []byte { return r.roomy(claimedBytes(res)) }

// BodyOfAll is BodyOf, with room for the tasks that the command changed, too.
func (r *Request) BodyOfAll(res *fsm.Result) []byte { return r.roomy(resultBytes(res)) }

// roomy is Body with room for n bytes.
func (r *Request) roomy(n int) []byte {
	b := r.Body()
	switch {
	case cap(b) >= n:
		return b
	case n > KeptBytes:
		return r.Server.Port.Buffers.Get(n)
	}
	return slices.Grow(b, n)
}

// claimedBytes is about what the tasks that a command claimed take in the answer, and a few
// words of what else it did.
func claimedBytes(res *fsm.Result) int {
	n := resultRoom
	for i := range res.Claims {
		n += DataBytes(&res.Claims[i].Task, true, true)
	}
	for i := range res.Results {
		n += claimedBytes(&res.Results[i])
	}
	return n
}

// SendJSON answers 200 with what nobody asks for often.
func (r *Request) SendJSON(answer any) {
	body, err := json.Marshal(answer)
	if err != nil {
		r.RefuseCode(err)
		return
	}
	r.Send(fasthttp.StatusOK, append(r.Body(), body...))
}
