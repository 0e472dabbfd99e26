package bodies

import (
	"sync"
	"sync/atomic"
)

// Lent is the body of an answer to a shared request. Each of its callers reads its own part; when
// all have, the memory is used for another answer. One that has left never does, and then the
// memory is the collector's.
type Lent struct {
	body    []byte
	readers atomic.Int32 // callers that have not read
}

// NewLent returns a body that so many callers read, in memory from Lend.
func NewLent(body []byte, callers int) *Lent {
	l := &Lent{body: body}
	l.readers.Store(int32(callers))
	return l
}

// Read says that one of the callers has read its part, and keeps nothing of it.
func (l *Lent) Read() {
	if l.readers.Add(-1) == 0 && cap(l.body) <= lentBytesMax {
		memory.Put(&l.body)
	}
}

// lentBytesMax bounds the body whose memory is used again.
const lentBytesMax = 1 << 20

// memory is of bodies that all have read, as *[]byte.
var memory sync.Pool

// Lend returns memory of n bytes.
func Lend(n int) []byte {
	if b, ok := memory.Get().(*[]byte); ok && cap(*b) >= n {
		return (*b)[:n]
	}
	return make([]byte, n, n+n/4) // the next answer may be a little longer
}
