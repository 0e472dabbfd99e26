package api

import (
	"context"
	"encoding/json"
	"errors"
	"math/bits"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/door"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

const (
	// answerFreeBytes is the size up to which an answer takes no room. Most answers are smaller, and so are still
	// sent when large ones are refused.
	answerFreeBytes = 32 << 10
	// taskRoom is the size of a task in an answer, without its users' own data.
	taskRoom = 512
	// resultRoom is the size of a result in an answer about many that shows only a task's id and status.
	resultRoom = 128
	// keptBytes bounds the answer buffer that a connection keeps while it waits for its next request.
	keptBytes = 32 << 10
	// keptBodyBytes is keptBytes for bodies. It is smaller because most bodies are, and a client that sends a large
	// one now and then should not hold memory in between.
	keptBodyBytes = 4 << 10
)

// room is the memory that is counted for a request.
type room struct {
	answer int64 // taken for the answer
	result int64 // taken for the result that the answer is made from
	body   int64 // counted for the body that another node has forwarded
	shared bool  // the answer's body is shared by all such answers, and takes no room
	// release, if not nil, frees the memory of the result that the answer was made from.
	release func()
}

// more returns how many bytes of room an answer of n bytes needs beyond what its request has.
func (r *request) more(n int) int64 {
	if n <= answerFreeBytes {
		return 0
	}
	return max(int64(n)-r.room.answer, 0)
}

// roomFor takes room for an answer of n bytes before it is made. If there is no room, it refuses the request and
// returns false.
func (r *request) roomFor(n int) bool {
	more := r.more(n)
	if more > 0 && !r.core.port.Answers.Take(more) {
		r.refuse(r.core.port.Answers.Full())
		return false
	}
	r.room.answer += more
	return true
}

// roomAhead waits for room for the result of cmd before cmd is proposed, because afterwards the request cannot be
// refused, and its result occupies memory while the answer waits for room. If there is no room, it refuses the
// request and returns false; nothing was done.
func (r *request) roomAhead(cmd command.Command) bool {
	if _, submits := cmd.(command.Submit); submits {
		return true // its result has no tasks
	}
	room := r.roomOf(cmd)
	if room == nil {
		return true
	}
	if _, err := room(r.ctx()); err != nil {
		r.refuse(r.core.port.Answers.Full())
		return false
	}
	return true
}

// roomOf returns what takes room for the result of cmd, nil if that is small. It waits at most half the time that the
// request may take; the rest is for the log.
func (r *request) roomOf(cmd command.Command) func(context.Context) (give func(), err error) {
	n := int64(command.AboutOf(cmd).Changes) * taskRoom
	if n <= answerFreeBytes {
		return nil
	}
	results := &r.core.port.Results
	give := func() {
		r.room.result = 0
		results.Give(n)
	}
	return func(ctx context.Context) (func(), error) {
		within, cancel := context.WithTimeout(ctx, r.core.cfg.Wait/2)
		defer cancel()
		switch {
		case results.Wait(within, n):
			r.room.result = n
			return give, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		}
		return nil, &nodes.Overload{Bound: nodes.BoundAnswers, Text: "results that are not answered yet take all their memory"}
	}
}

// roomForResult waits for room for the answer about something that was done, and so cannot be refused. If there is no
// room, it answers that the outcome is unknown, releases claims that no repeat could get, and returns false.
func (r *request) roomForResult(res *fsm.Result) bool {
	more := r.more(resultBytes(res))
	if more > 0 && !r.core.port.Answers.Take(more) && !r.core.port.Answers.Wait(r.ctx(), more) {
		r.giveBack()
		r.refuse(refuse.Because(wire.CodeOutcomeUnknown))
		return false
	}
	r.room.answer += more
	return true
}

// errAnswersFull is returned when there is no room for a leader's answer.
var errAnswersFull = errors.New("answers that were not read yet take as much memory as they may")

// roomForLeaders takes room for a leader's answer of n bytes before this node reads it. If it is about a mutation, it
// waits for room until ctx ends. Errors: errAnswersFull.
func (r *request) roomForLeaders(ctx context.Context, n int) error {
	more := r.more(n)
	if more > 0 && !r.core.port.Answers.Take(more) && (!r.target.call.has(mutation) || !r.core.port.Answers.Wait(ctx, more)) {
		return errAnswersFull
	}
	r.room.answer += more
	return nil
}

// countAnswer takes room for the whole answer until it is written. If there is no room, the answer is replaced by a
// refusal.
func (r *request) countAnswer() {
	resp := &r.http.Response
	if !resp.IsBodyStream() && !r.room.shared {
		r.giveSurplus(len(resp.Body()))
		more := r.more(len(resp.Body()))
		if more > 0 && !r.core.port.Answers.Take(more) {
			more = 0
			r.resetAnswer()
			if r.target.call.has(mutation) {
				r.giveBack()
				r.refuse(refuse.Because(wire.CodeOutcomeUnknown))
			} else {
				r.refuse(r.core.port.Answers.Full())
			}
		}
		r.room.answer += more
	}
	room, s := r.room.answer, r.core
	if r.room.answer = 0; room == 0 {
		return
	}
	switch conn := r.http.Conn().(type) {
	case *door.Conn:
		conn.HoldAnswer(room)
	case passedConn:
		conn.OnWritten(func() { s.port.Answers.Give(room) })
	default:
		s.port.Answers.Give(room)
	}
}

// giveSurplus returns the room beyond an answer of n bytes, which was for the data it was made from.
func (r *request) giveSurplus(n int) {
	if n <= answerFreeBytes {
		n = 0
	}
	if surplus := r.room.answer - int64(n); surplus > 0 {
		r.room.answer -= surplus
		r.core.port.Answers.Give(surplus)
	}
}

// dataBytes is the size of a task with its users' own data in an answer.
func dataBytes(t *fsm.Task, params, result bool) int {
	n := taskRoom + len(t.Error) + len(t.Opts().Progress) + len(t.Key) + len(t.Opts().Group)
	for _, l := range t.Opts().Labels {
		n += len(l.Name) + len(l.Value) + len(`"":"",`)
	}
	if params {
		n += len(t.Params) + len(t.Payload)/3*4 + len(t.Opts().Attributes) + len(t.Opts().Signal)
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
		n += dataBytes(res.Task, true, true)
	}
	for i := range res.Claims {
		n += dataBytes(res.Claims[i].Task, true, true)
	}
	for i := range res.Submitted {
		n += dataBytes(res.Submitted[i].Task, false, false)
	}
	for i := range res.Results {
		n += resultBytes(&res.Results[i])
	}
	return n
}

// bufferFor is buffer with capacity for the tasks that a result has claimed, which are most of such an answer. Growing
// the buffer while appending them would copy it several times.
func (r *request) bufferFor(res *fsm.Result) []byte { return r.roomy(claimedBytes(res)) }

// bufferForAll is bufferFor, but also with capacity for the tasks that the command changed.
func (r *request) bufferForAll(res *fsm.Result) []byte { return r.roomy(resultBytes(res)) }

// roomy is buffer with capacity for about n bytes, an estimate that may be half too high. For few bytes the capacity is a
// power of two: fasthttp drops buffers above the one that most answers fit in, and so would drop one a little larger
// than that after each answer.
func (r *request) roomy(n int) []byte {
	b := r.buffer()
	if n <= keptBytes {
		n = 1 << bits.Len(uint(n*2/3))
	}
	switch {
	case cap(b) >= n:
		return b
	case n > keptBytes:
		return r.core.port.Buffers.Get(n)
	}
	return make([]byte, 0, n)
}

// claimedBytes is the approximate size of the tasks that a command claimed in the answer, and of a short summary of
// its other results.
func claimedBytes(res *fsm.Result) int {
	n := resultRoom
	for i := range res.Claims {
		n += dataBytes(res.Claims[i].Task, true, true)
	}
	for i := range res.Results {
		n += claimedBytes(&res.Results[i])
	}
	return n
}

// sendJSON answers 200 with answer encoded by reflection, for calls that are rare.
func (r *request) sendJSON(answer any) {
	body, err := json.Marshal(answer)
	if err != nil {
		r.refuseCode(err)
		return
	}
	r.send(fasthttp.StatusOK, append(r.buffer(), body...))
}
