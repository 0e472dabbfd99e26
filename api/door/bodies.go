package door

import (
	"errors"
	"strconv"
	"sync/atomic"

	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/nodes"
)

// The HTTP server reads a whole body before the request, and so its key, is checked. Many connections with the
// largest bodies would exceed a machine's memory. So the bytes read of unanswered requests are bounded
// over all connections.

// BodyFreeBytes is the amount that each connection may read outside of that bound. Claims, settles and most submits
// are smaller, and so continue when large bodies are refused.
const BodyFreeBytes = 32 << 10

// BodyCopies is the factor with which a large body counts: until it is answered there are also its values, and the
// command made of them, which waits for the log.
const BodyCopies = 3

// ErrBodiesFull is returned by a Read when there is no room for a body.
var ErrBodiesFull = errors.New("the requests that are being received take too much memory")

// bodyShare is the part that one connection has read of a request that it has not begun to answer. Only the goroutine
// that serves the connection reads and answers; any goroutine may close.
type bodyShare struct {
	read int // bytes since the last answer
	// expected is the length of the body according to its header, 0: not known.
	expected int
	counted  atomic.Int64 // this connection's part of all: BodyCopies for each byte
	all      *atomic.Int64
	most     int64
	// streamed says that read bytes are not kept.
	streamed bool
	due      bool // the header was read, and more of the request may follow
}

// take counts n bytes that were read, and reports whether there is room for them.
func (b *bodyShare) take(n int) bool {
	b.read += n
	return b.count(b.read)
}

// expect counts a body before it is read, because its memory is allocated at its beginning. It reports whether there
// is room for it.
func (b *bodyShare) expect(n int) bool {
	b.expected = n
	return b.count(n)
}

// hold reports whether there is room for n bytes to be read, and counts them. It is for bodies whose length is given
// chunk by chunk, because the memory of a whole chunk is allocated at its beginning.
func (b *bodyShare) hold(n int) bool {
	return n <= BodyFreeBytes || b.expected > 0 || b.count(b.read+n)
}

// count makes sure that at least n bytes are counted, and reports whether there is room for them. If there is no
// room, nothing is counted even for a moment, because another body that is counted already could be refused. If the
// connection is closed between the two steps, less is returned than was counted; the connection's goroutine closes it
// again at the end.
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

// takeBody adds n to all unless that would exceed most.
func takeBody(all *atomic.Int64, n, most int64) bool {
	for held := all.Load(); held+n <= most; held = all.Load() {
		if all.CompareAndSwap(held, held+n) {
			return true
		}
	}
	return false
}

// give uncounts everything: the request is answered, or its connection closed.
func (b *bodyShare) give() {
	if held := b.counted.Swap(0); held > 0 {
		b.all.Add(-held)
	}
}

// answered is give, called when the answer begins. While the body is due, written bytes are not an answer.
func (b *bodyShare) answered() {
	if b.due {
		return
	}
	if b.counted.Load() > 0 {
		b.give()
	}
	b.read, b.expected = 0, 0
}

// ReserveForwarded counts a body of n bytes that another node has forwarded, and returns the argument for FreeForwarded once
// it is answered. ok is false if there is no room for it.
func (p *Port) ReserveForwarded(n int) (counted int64, ok bool) {
	if n <= BodyFreeBytes {
		return 0, true
	}
	if counted = BodyCopies * int64(n); !takeBody(&p.bodies, counted, p.cfg.BodiesBytes) {
		return 0, false
	}
	return counted, true
}

// FreeForwarded uncounts what ReserveForwarded has counted.
func (p *Port) FreeForwarded(counted int64) { p.bodies.Add(-counted) }

// BodiesFull returns the refusal of a body that there is no room for.
func (p *Port) BodiesFull() *refuse.Refusal {
	return refuse.Overloaded(nodes.BoundBodies, "The server is receiving as many large requests as it may, of "+strconv.FormatInt(p.cfg.BodiesBytes, 10)+" bytes with what is made of them")
}
