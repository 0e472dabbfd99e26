package bodies

import (
	"sync"
	"sync/atomic"
)

// Lent is the body of an answer to a shared request. Each caller reads its own part, and when all have done so the
// memory is used for another answer. If a caller has left, that never happens, and the garbage collector frees it.
type Lent struct {
	body    []byte
	readers atomic.Int32 // callers that have not read yet
}

// NewLent returns a body, in memory from Lend, that this number of callers read.
func NewLent(body []byte, callers int) *Lent {
	l := &Lent{body: body}
	l.readers.Store(int32(callers))
	return l
}

// Read notes that one of the callers has read its part and keeps no reference to it.
func (l *Lent) Read() {
	if l.readers.Add(-1) == 0 && cap(l.body) <= lentBytesMax {
		memory.Put(&l.body)
	}
}

// lentBytesMax bounds the body whose memory is reused.
const lentBytesMax = 1 << 20

// memory holds bodies that all callers have read, as *[]byte.
var memory sync.Pool

// Lend returns n bytes of memory, possibly reused.
func Lend(n int) []byte {
	if b, ok := memory.Get().(*[]byte); ok && cap(*b) >= n {
		return (*b)[:n]
	}
	return make([]byte, n, n+n/4) // the next answer may be a little longer
}
