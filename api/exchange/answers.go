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
	"github.com/claimq/claimq/nodes"
)

const (
	// AnswerFreeBytes is the size up to which an answer takes no room. Most answers are smaller, and so are still
	// sent when large ones are refused.
	AnswerFreeBytes = 32 << 10
	// taskRoom is the size of a task in an answer, without its users' own data.
	taskRoom = 512
	// resultRoom is the size of a result in an answer about many that shows only a task's id and status.
	resultRoom = 128
	// KeptBytes bounds the answer buffer that a connection keeps while it waits for its next request.
	KeptBytes = 32 << 10
	// KeptBodyBytes is KeptBytes for bodies. It is smaller because most bodies are, and a client that sends a large
	// one now and then should not hold memory in between.
	KeptBodyBytes = 4 << 10
)

// writtenConn is a connection of the peer port, which tells when the memory of an answer is free.
type writtenConn interface {
	// OnWritten calls fn once the answer is written, or will never be.
	OnWritten(fn func())
}

// more returns how many bytes of room an answer of n bytes needs beyond what its request has.
func (r *Request) more(n int) int64 {
	if n <= AnswerFreeBytes {
		return 0
	}
	return max(int64(n)-r.room, 0)
}

// RoomFor takes room for an answer of n bytes before it is made. If there is no room, it refuses the request and
// returns false.
func (r *Request) RoomFor(n int) bool {
	more := r.more(n)
	if more > 0 && !r.Server.Port.Answers.Take(more) {
		r.Refuse(r.Server.Port.Answers.Full())
		return false
	}
	r.room += more
	return true
}

// roomAhead waits for room for the result of cmd before cmd is proposed, because afterwards the request cannot be
// refused, and its result occupies memory while the answer waits for room. If there is no room, it refuses the
// request and returns false; nothing was done.
func (r *Request) roomAhead(cmd command.Command) bool {
	if _, submits := cmd.(command.Submit); submits {
		return true // its result has no tasks
	}
	room := r.roomOf(cmd)
	if room == nil {
		return true
	}
	if _, err := room(r.Wait()); err != nil {
		r.Refuse(r.Server.Port.Answers.Full())
		return false
	}
	return true
}

// roomOf returns what takes room for the result of cmd, nil if that is small. It waits at most half the time that the
// request may take; the rest is for the log.
func (r *Request) roomOf(cmd command.Command) func(context.Context) (give func(), err error) {
	n := int64(command.AboutOf(cmd).Changes) * taskRoom
	if n <= AnswerFreeBytes {
		return nil
	}
	results := &r.Server.Port.Results
	give := func() {
		r.ahead = 0
		results.Give(n)
	}
	return func(ctx context.Context) (func(), error) {
		within, cancel := context.WithTimeout(ctx, r.Server.Cfg.Wait/2)
		defer cancel()
		switch {
		case results.Wait(within, n):
			r.ahead = n
			return give, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		}
		return nil, &nodes.Overload{Bound: nodes.BoundAnswers, Text: "results that are not answered yet take all their memory"}
	}
}

// roomForResult waits for room for the answer about something that was done, and so cannot be refused. If there is no
// room, it answers that the outcome is unknown, releases claims that no repeat could get, and returns false.
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

// errAnswersFull is returned when there is no room for a leader's answer.
var errAnswersFull = errors.New("answers that were not read yet take as much memory as they may")

// roomForLeaders takes room for a leader's answer of n bytes before this node reads it. If it is about a mutation, it
// waits for room until ctx ends. Errors: errAnswersFull.
func (r *Request) roomForLeaders(ctx context.Context, n int) error {
	more := r.more(n)
	if more > 0 && !r.Server.Port.Answers.Take(more) && (!r.Target.call.Has(Mutation) || !r.Server.Port.Answers.Wait(ctx, more)) {
		return errAnswersFull
	}
	r.room += more
	return nil
}

// countAnswer takes room for the whole answer until it is written. If there is no room, the answer is replaced by a
// refusal.
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

// giveSurplus returns the room beyond an answer of n bytes, which was for the data it was made from.
func (r *Request) giveSurplus(n int) {
	if n <= AnswerFreeBytes {
		n = 0
	}
	if surplus := r.room - int64(n); surplus > 0 {
		r.room -= surplus
		r.Server.Port.Answers.Give(surplus)
	}
}

// DataBytes is the size of a task with its users' own data in an answer.
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

// resultBytes is the approximate size of the answer to a command.
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

// BodyOf is Body with capacity for the tasks that a result has claimed, which are most of such an answer. Growing the
// buffer while appending them would copy it several times.
func (r *Request) BodyOf(res *fsm.Result) []byte { return r.roomy(claimedBytes(res)) }

// BodyOfAll is BodyOf, but also with capacity for the tasks that the command changed.
func (r *Request) BodyOfAll(res *fsm.Result) []byte { return r.roomy(resultBytes(res)) }

// roomy is Body with capacity for n bytes.
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

// claimedBytes is the approximate size of the tasks that a command claimed in the answer, and of a short summary of
// its other results.
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

// SendJSON answers 200 with answer encoded by reflection, for calls that are rare.
func (r *Request) SendJSON(answer any) {
	body, err := json.Marshal(answer)
	if err != nil {
		r.RefuseCode(err)
		return
	}
	r.Send(fasthttp.StatusOK, append(r.Body(), body...))
}
