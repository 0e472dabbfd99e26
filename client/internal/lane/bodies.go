package lane

import (
	"io"
	"sync"
	"sync/atomic"
)

// Joined is the body of a shared request: Open, the items separated by commas, and the end. It is never in memory as
// a whole, and can be read again for each repeat because the items do not change.
type Joined struct {
	Open string // the beginning of an object and of a list in it
	// Items has two elements for each item: its head and its rest.
	Items [][2][]byte
}

// joinedEnd ends the list that Open begins, and its object.
const joinedEnd = "]}"

// Size returns the length in bytes.
func (j *Joined) Size() (n int64) {
	n = int64(len(j.Open) + len(joinedEnd) + len(j.Items) - 1)
	for _, item := range j.Items {
		n += int64(len(item[0]) + len(item[1]))
	}
	return n
}

// part returns part n of the body: Open, then for each item its head, its rest and, unless it is the last, a comma,
// then the end. ok is false after the last part.
func (j *Joined) part(n int) (part []byte, ok bool) {
	const parts = 3 // of an item
	last := parts * len(j.Items)
	switch {
	case n == 0:
		return []byte(j.Open), true
	case n < last && n%parts == 0:
		return []byte{','}, true
	case n < last:
		return j.Items[n/parts][n%parts-1], true
	}
	return []byte(joinedEnd), n == last
}

// Reader returns a new reader of the body.
func (j *Joined) Reader() io.Reader { return &joinedReader{body: j} }

type joinedReader struct {
	body *Joined
	at   int    // the part after rest
	rest []byte // the unread rest of the previous part
}

// Read implements io.Reader.
func (r *joinedReader) Read(p []byte) (n int, err error) {
	for n < len(p) {
		if len(r.rest) == 0 {
			part, ok := r.body.part(r.at)
			if !ok {
				break
			}
			r.rest, r.at = part, r.at+1
		}
		m := copy(p[n:], r.rest)
		n, r.rest = n+m, r.rest[m:]
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// Pooled is the body of an answer to a shared request. Each caller reads its own part, and when all have done so the
// memory is used for another answer. If a caller has left, that never happens, and the garbage collector frees it.
type Pooled struct {
	body    []byte
	readers atomic.Int32 // callers that have not read yet
}

// NewPooled returns a body, in memory from Alloc, that this number of callers read.
func NewPooled(body []byte, callers int) *Pooled {
	l := &Pooled{body: body}
	l.readers.Store(int32(callers))
	return l
}

// Done notes that one of the callers has read its part and keeps no reference to it.
func (l *Pooled) Done() {
	if l.readers.Add(-1) == 0 && cap(l.body) <= pooledBytesMax {
		pool.Put(&l.body)
	}
}

// pooledBytesMax bounds the body whose memory is reused.
const pooledBytesMax = 1 << 20

// pool holds bodies that all callers have read, as *[]byte.
var pool sync.Pool

// Alloc returns n bytes of memory, possibly reused.
func Alloc(n int) []byte {
	if b, ok := pool.Get().(*[]byte); ok && cap(*b) >= n {
		return (*b)[:n]
	}
	return make([]byte, n, n+n/4) // the next answer may be a little longer
}
