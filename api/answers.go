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
	// answerFreeBytes is the size up to which an answer reserves no memory. Most answers are smaller, and so are still
	// sent when large ones are refused.
	answerFreeBytes = 32 << 10
	// taskOverhead is the size of a task in an answer, without its users' own data.
	taskOverhead = 512
	// resultOverhead is the size of a result in an answer about many that shows only a task's id and status.
	resultOverhead = 128
	// keptBytes bounds the answer buffer that a connection keeps while it waits for its next request.
	keptBytes = 32 << 10
	// keptBodyBytes is keptBytes for bodies. It is smaller because most bodies are, and a client that sends a large
	// one now and then should not hold memory in between.
	keptBodyBytes = 4 << 10
)

// reserved is the memory that a request has reserved in the port's budgets, in bytes.
type reserved struct {
	answer int64 // for the answer
	result int64 // for the result that the answer is made from
	body   int64 // for the body, if another node has forwarded it
	shared bool  // all such answers share one body, so it reserves nothing
	// freeResult, if not nil, lets the memory of the result be reused.
	freeResult func()
}

// lacking returns how many bytes an answer of n bytes needs beyond those that its request has reserved.
func (r *request) lacking(n int) int64 {
	if n <= answerFreeBytes {
		return 0
	}
	return max(int64(n)-r.reserved.answer, 0)
}

// reserveAnswer reserves memory for an answer of n bytes, before it is made. If that fails, it refuses the request
// and returns false.
func (r *request) reserveAnswer(n int) bool {
	more := r.lacking(n)
	if more > 0 && !r.core.port.Answers.TryReserve(more) {
		r.refuse(r.core.port.Answers.Full())
		return false
	}
	r.reserved.answer += more
	return true
}

// reserveResult waits for memory for the result of cmd. It comes before cmd is proposed, because afterwards the request
// cannot be refused, and its result stays in memory until there is memory for the answer, too. If that fails, it
// refuses the request and returns false; nothing was done.
func (r *request) reserveResult(cmd command.Command) bool {
	if _, submits := cmd.(command.Submit); submits {
		return true // its result has no tasks
	}
	reserve := r.resultReserver(cmd)
	if reserve == nil {
		return true
	}
	if _, err := reserve(r.ctx()); err != nil {
		r.refuse(r.core.port.Answers.Full())
		return false
	}
	return true
}

// resultReserver returns a function that reserves memory for the result of cmd, and returns one that frees it again. It
// waits at most half the time that the request may take; the rest is for the log. It is nil if the result is small.
func (r *request) resultReserver(cmd command.Command) func(context.Context) (free func(), err error) {
	n := int64(command.AboutOf(cmd).Changes) * taskOverhead
	if n <= answerFreeBytes {
		return nil
	}
	results := &r.core.port.Results
	free := func() {
		r.reserved.result = 0
		results.Free(n)
	}
	return func(ctx context.Context) (func(), error) {
		within, cancel := context.WithTimeout(ctx, r.core.cfg.Wait/2)
		defer cancel()
		switch {
		case results.Reserve(within, n):
			r.reserved.result = n
			return free, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		}
		return nil, &nodes.Overload{Bound: nodes.BoundAnswers, Text: "results that are not answered yet take all their memory"}
	}
}

// reserveForDone waits for memory for the answer about a command that was applied, and so can no longer be refused. If
// that fails, it answers that the outcome is unknown, releases claims that no repeat could get, and returns false.
func (r *request) reserveForDone(res *fsm.Result) bool {
	more := r.lacking(resultBytes(res))
	if more > 0 && !r.core.port.Answers.TryReserve(more) && !r.core.port.Answers.Reserve(r.ctx(), more) {
		r.releaseClaims()
		r.refuse(refuse.Because(wire.CodeOutcomeUnknown))
		return false
	}
	r.reserved.answer += more
	return true
}

// errAnswersFull is returned when there is no memory for a leader's answer.
var errAnswersFull = errors.New("answers that were not read yet take as much memory as they may")

// reserveLeadersAnswer reserves memory for a leader's answer of n bytes before this node reads it. For the answer to a
// mutation it waits until ctx ends. Errors: errAnswersFull.
func (r *request) reserveLeadersAnswer(ctx context.Context, n int) error {
	more := r.lacking(n)
	if more > 0 && !r.core.port.Answers.TryReserve(more) && (!r.target.call.has(mutation) || !r.core.port.Answers.Reserve(ctx, more)) {
		return errAnswersFull
	}
	r.reserved.answer += more
	return nil
}

// holdAnswer reserves memory for the answer, which is complete, until it is written, and frees what was reserved beyond
// its size. If that fails, it replaces the answer by a refusal.
func (r *request) holdAnswer() {
	resp := &r.http.Response
	if !resp.IsBodyStream() && !r.reserved.shared {
		r.freeSurplus(len(resp.Body()))
		more := r.lacking(len(resp.Body()))
		if more > 0 && !r.core.port.Answers.TryReserve(more) {
			more = 0
			r.resetAnswer()
			if r.target.call.has(mutation) {
				r.releaseClaims()
				r.refuse(refuse.Because(wire.CodeOutcomeUnknown))
			} else {
				r.refuse(r.core.port.Answers.Full())
			}
		}
		r.reserved.answer += more
	}
	n, s := r.reserved.answer, r.core
	if r.reserved.answer = 0; n == 0 {
		return
	}
	switch conn := r.http.Conn().(type) {
	case *door.Conn:
		conn.HoldAnswer(n)
	case passedConn:
		conn.OnWritten(func() { s.port.Answers.Free(n) })
	default:
		s.port.Answers.Free(n)
	}
}

// freeSurplus frees what was reserved beyond an answer of n bytes, for the data that it was made from.
func (r *request) freeSurplus(n int) {
	if n <= answerFreeBytes {
		n = 0
	}
	if surplus := r.reserved.answer - int64(n); surplus > 0 {
		r.reserved.answer -= surplus
		r.core.port.Answers.Free(surplus)
	}
}

// dataBytes is the size of a task with its users' own data in an answer.
func dataBytes(t *fsm.Task, params, result bool) int {
	n := taskOverhead + len(t.Error) + len(t.Opts().Progress) + len(t.Key) + len(t.Opts().Group)
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
func (r *request) bufferFor(res *fsm.Result) []byte { return r.sizedBuffer(claimedBytes(res)) }

// bufferForAll is bufferFor, but also with capacity for the tasks that the command changed.
func (r *request) bufferForAll(res *fsm.Result) []byte { return r.sizedBuffer(resultBytes(res)) }

// sizedBuffer is buffer with capacity for about n bytes, an estimate that may be half too high. For few bytes the
// capacity is a power of two: fasthttp drops buffers above the one that most answers fit in, and so would drop one a
// little larger than that after each answer.
func (r *request) sizedBuffer(n int) []byte {
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
	n := resultOverhead
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
