package api

import (
	"context"
	"errors"

	"github.com/claimq/claimq/api/port"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
)

const (
	// answerFreeBytes is what each answer may take without that: most are smaller,
	// and go on when large ones are refused.
	answerFreeBytes = 32 << 10
	// taskRoom is what a task takes in an answer beside its users' own data.
	taskRoom = 512
	// keptBytes bounds the buffers, one for bodies and one for answers, that a
	// connection keeps while it waits for its next request.
	keptBytes = 32 << 10
)

// writtenConn is a connection of the peer port, which tells when an answer is out
// of memory.
type writtenConn interface {
	// OnWritten has fn called once the answer is written, or never will be.
	OnWritten(fn func())
}

// more returns how much an answer of n bytes takes beyond what its request has.
func (r *request) more(n int) int64 {
	if n <= answerFreeBytes {
		return 0
	}
	return max(int64(n)-r.room, 0)
}

// roomFor takes room for an answer of n bytes before it is made; false: there is
// none, and it is refused.
func (r *request) roomFor(n int) bool {
	more := r.more(n)
	if more > 0 && !r.server.port.Answers.Take(more) {
		r.refuse(r.server.port.Answers.Full())
		return false
	}
	r.room += more
	return true
}

// roomForResult waits for room for the answer about what was done: it can be
// refused no more. false: there was none, and the answer says that the outcome is
// unknown.
func (r *request) roomForResult(res *fsm.Result) bool {
	more := r.more(resultBytes(res))
	if more > 0 && !r.server.port.Answers.Take(more) && !r.server.port.Answers.Wait(r.wait(), more) {
		r.refuse(refuse.Because(wire.CodeOutcomeUnknown))
		return false
	}
	r.room += more
	return true
}

// errAnswersFull is returned for a leader's answer that there is no room for.
var errAnswersFull = errors.New("answers that were not read yet take as much memory as they may")

// roomForLeaders takes room for a leader's answer of n bytes before it is read here.
// That about what was done waits for room until ctx ends. Errors: errAnswersFull.
func (r *request) roomForLeaders(ctx context.Context, n int) error {
	more := r.more(n)
	if more > 0 && !r.server.port.Answers.Take(more) && (!r.target.call.has(mutation) || !r.server.port.Answers.Wait(ctx, more)) {
		return errAnswersFull
	}
	r.room += more
	return nil
}

// countAnswer counts the whole answer, which is made, until it is written. One that
// there is no room for is dropped, and says so.
func (r *request) countAnswer() {
	resp := &r.http.Response
	if !resp.IsBodyStream() {
		more := r.more(len(resp.Body()))
		if more > 0 && !r.server.port.Answers.Take(more) {
			more = 0
			r.resetAnswer()
			if r.target.call.has(mutation) {
				r.giveBack()
				r.refuse(refuse.Because(wire.CodeOutcomeUnknown))
			} else {
				r.refuse(r.server.port.Answers.Full())
			}
		}
		r.room += more
	}
	room, s := r.room, r.server
	if r.room = 0; room == 0 {
		return
	}
	switch conn := r.http.Conn().(type) {
	case *port.Conn:
		conn.HoldAnswer(room)
	case writtenConn:
		conn.OnWritten(func() { s.port.Answers.Give(room) })
	default:
		s.port.Answers.Give(room)
	}
}

// dataBytes is what the users' own data of a task takes in an answer.
func dataBytes(t *fsm.Task, params, result bool) int {
	n := taskRoom + len(t.Error) + len(t.Progress)
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
		n += dataBytes(res.Task, true, true)
	}
	for i := range res.Claims {
		n += dataBytes(&res.Claims[i].Task, true, true)
	}
	for i := range res.Submitted {
		n += dataBytes(res.Submitted[i].Task, false, false)
	}
	for i := range res.Results {
		n += resultBytes(&res.Results[i])
	}
	return n
}
