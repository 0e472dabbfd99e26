package client

import (
	"sync"
	"sync/atomic"
)

// sharedAnswer is the answer to a shared request. Each of its callers reads its own part; when
// all have, the body's memory is used for another. One that has left never does, and then the
// memory is the collector's.
type sharedAnswer struct {
	answer
	readers atomic.Int32 // callers that have not read
}

// newSharedAnswer returns the answer for so many callers.
func newSharedAnswer(a answer, callers int) *sharedAnswer {
	s := &sharedAnswer{answer: a}
	s.readers.Store(int32(callers))
	return s
}

// read says that one of the callers has read its part, and keeps nothing of it.
func (s *sharedAnswer) read() {
	if s.readers.Add(-1) == 0 {
		giveBody(s.body)
	}
}

// lentBytesMax bounds the body whose memory is used again.
const lentBytesMax = 1 << 20

// bodies has the memory of answers to shared requests, as *[]byte.
var bodies sync.Pool

// lendBody returns memory of n bytes.
func lendBody(n int) []byte {
	if b, ok := bodies.Get().(*[]byte); ok && cap(*b) >= n {
		return (*b)[:n]
	}
	return make([]byte, n, n+n/4) // the next answer may be a little longer
}

// giveBody takes back the memory of a body that nobody reads any more.
func giveBody(b []byte) {
	if cap(b) <= lentBytesMax {
		bodies.Put(&b)
	}
}
