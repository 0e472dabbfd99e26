package api

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
)

// An answer is in memory from when the state is read for it until the other side
// has taken it. Whoever asks for large ones and does not read would have a node keep
// as many as it has connections. So what is read or rendered and not written yet is
// bounded for all connections together.

const (
	// answerFreeBytes is what each answer may take without that: most are smaller,
	// and go on when large ones are refused.
	answerFreeBytes = 32 << 10
	// taskRoom is what a task takes in an answer beside its users' own data.
	taskRoom = 512
	// keptBytes bounds the buffers, one for bodies and one for answers, that a
	// connection keeps while it waits for its next request.
	keptBytes = 32 << 10
	// unsentBytes bounds what the system keeps of a connection's answers that it has
	// not even sent: it counts for the node's memory too.
	unsentBytes = 128 << 10
)

// answerRoom is the memory for answers. It is safe for concurrent use.
type answerRoom struct {
	most int64

	mu    sync.Mutex // guards what follows
	held  int64
	freed chan struct{} // closed when there is more room; nil: nobody waits for that
}

// take takes n bytes, false if there are not so many. Whatever one answer takes,
// there is room for it when there is no other.
func (a *answerRoom) take(n int64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.takeLocked(n)
}

func (a *answerRoom) takeLocked(n int64) bool {
	if a.held > 0 && a.held+n > a.most {
		return false
	}
	a.held += n
	return true
}

// wait takes n bytes as soon as there are so many, false if ctx ends before.
func (a *answerRoom) wait(ctx context.Context, n int64) bool {
	for {
		a.mu.Lock()
		if a.takeLocked(n) {
			a.mu.Unlock()
			return true
		}
		if a.freed == nil {
			a.freed = make(chan struct{})
		}
		freed := a.freed
		a.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
			return false
		}
	}
}

// give gives n bytes back.
func (a *answerRoom) give(n int64) {
	if n == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held -= n
	if a.freed != nil {
		close(a.freed)
		a.freed = nil
	}
}

// taken returns how many bytes are taken.
func (a *answerRoom) taken() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.held
}

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
	if more > 0 && !r.server.answers.take(more) {
		r.refuse(r.server.answersFull())
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
	if more > 0 && !r.server.answers.take(more) && !r.server.answers.wait(r.wait(), more) {
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
	if more > 0 && !r.server.answers.take(more) && (!r.target.call.has(mutation) || !r.server.answers.wait(ctx, more)) {
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
		if more > 0 && !r.server.answers.take(more) {
			more = 0
			r.resetAnswer()
			if r.target.call.has(mutation) {
				r.giveBack()
				r.refuse(refuse.Because(wire.CodeOutcomeUnknown))
			} else {
				r.refuse(r.server.answersFull())
			}
		}
		r.room += more
	}
	room, s := r.room, r.server
	if r.room = 0; room == 0 {
		return
	}
	switch conn := r.http.Conn().(type) {
	case *countedConn:
		conn.answer.Add(room)
	case writtenConn:
		conn.OnWritten(func() { s.answers.give(room) })
	default:
		s.answers.give(room)
	}
}

// answersFull is the refusal of an answer that there is no room for.
func (s *Server) answersFull() *refuse.Refusal {
	f := refuse.Because(wire.CodeOverloaded)
	f.Text = "The server holds as many large answers that were not read yet as it may, of " + strconv.FormatInt(s.answers.most, 10) + " bytes"
	f.Reason = fsm.Reason(fsm.BoundAnswers)
	return f
}

// answerTaken gives back what the connection's answers took, which are written or
// never will be.
func (c *countedConn) answerTaken() {
	if c.answer.Load() > 0 {
		c.server.answers.give(c.answer.Swap(0))
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

// boundUnsent bounds what the system keeps unsent of conn.
func boundUnsent(conn net.Conn) {
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return // it is closed
	}
	// Where the system cannot, it keeps more.
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsentBytes)
	})
}
