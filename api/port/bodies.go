package port

import (
	"errors"
	"strconv"
	"sync/atomic"

	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/nodes"
)

// The HTTP server reads a whole body before anybody looks at the request, and so
// before anybody asks for a key. With as many connections as there may be, each
// with as large a body as there may be, that would be more memory than a machine
// has. So what the connections have read of requests that are not answered yet is
// bounded for all of them together.

// BodyFreeBytes is what each connection may have read without that: claims,
// settles and most submits are smaller, and go on when large bodies are refused.
const BodyFreeBytes = 32 << 10

// BodyCopies is how many times a large body counts: until it is answered there are its values,
// read out of it, and the command made of these, which waits for the log.
const BodyCopies = 3

// ErrBodiesFull is what a Read returns when there is no room for a body.
var ErrBodiesFull = errors.New("the requests that are being received take too much memory")

// bodyShare is what one connection has read of a request that it has not begun to
// answer. Only the goroutine that serves the connection reads and answers; anybody
// may close.
type bodyShare struct {
	read int // bytes since the last answer
	// expected is how long the body is by its request's head, 0: not known.
	expected int
	counted  atomic.Int64 // what of all's count is for it: BodyCopies for each byte
	all      *atomic.Int64
	most     int64
	// streamed says that what is read is not kept.
	streamed bool
	due      bool // the request's head was read, and the rest of it may be to come
}

// take counts n bytes that were read. It reports whether there is room for them.
func (b *bodyShare) take(n int) bool {
	b.read += n
	return b.count(b.read)
}

// expect counts a body that is to come: memory for it is asked for when it begins.
// It reports whether there is room for it.
func (b *bodyShare) expect(n int) bool {
	b.expected = n
	return b.count(n)
}

// hold counts room for n bytes that are to be read, and reports whether there is any: of a
// body that says its length chunk by chunk, memory for all of a chunk is asked for when that
// begins.
func (b *bodyShare) hold(n int) bool {
	return n <= BodyFreeBytes || b.expected > 0 || b.count(b.read+n)
}

// count sees to it that at least n bytes are counted, and reports whether there is room for
// them. Of what there is no room for nothing is counted, not for a moment: a body that
// is counted already might be refused for it. Who closes between the two sums gives less
// than was counted; the connection's goroutine closes it last.
func (b *bodyShare) count(n int) bool {
	more := BodyCopies*int64(max(n, b.expected)) - b.counted.Load()
	if n <= BodyFreeBytes || b.streamed || b.all == nil || more <= 0 {
		return true
	}
	if !takeBody(b.all, more, b.most) {
		return false
	}
	b.counted.Add(more)
	return true
}

// takeBody adds n to all unless that would be more than most.
func takeBody(all *atomic.Int64, n, most int64) bool {
	for held := all.Load(); held+n <= most; held = all.Load() {
		if all.CompareAndSwap(held, held+n) {
			return true
		}
	}
	return false
}

// give counts all of it off: the request is answered, or its connection closed.
func (b *bodyShare) give() {
	if held := b.counted.Swap(0); held > 0 {
		b.all.Add(-held)
	}
}

// answered is give, when the answer begins. While the body is due what is written is none.
func (b *bodyShare) answered() {
	if b.due {
		return
	}
	if b.counted.Load() > 0 {
		b.give()
	}
	b.read, b.expected = 0, 0
}

// TakePassedOn counts a body of n bytes that another node has passed on, and returns what
// GiveBody is to be given once it is answered. ok is false if there is no room for it.
func (p *Port) TakePassedOn(n int) (counted int64, ok bool) {
	if n <= BodyFreeBytes {
		return 0, true
	}
	if counted = BodyCopies * int64(n); !takeBody(&p.bodies, counted, p.cfg.BodiesBytes) {
		return 0, false
	}
	return counted, true
}

// GiveBody counts off what TakePassedOn has counted.
func (p *Port) GiveBody(counted int64) { p.bodies.Add(-counted) }

// BodiesFull is the refusal of a body that there is no room for.
func (p *Port) BodiesFull() *refuse.Refusal {
	return refuse.Overloaded(nodes.BoundBodies, "The server is receiving as many large requests as it may, of "+strconv.FormatInt(p.cfg.BodiesBytes, 10)+" bytes with what is made of them")
}
