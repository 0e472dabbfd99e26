// Package bodies holds the bodies of shared requests and of their answers.
package bodies

import "io"

// Joined is the body of a shared request: Open, the items separated by commas, and the end. It is never in memory as
// a whole, and can be read again for each repeat because the items do not change.
type Joined struct {
	Open  string // the beginning of an object and of a list in it
	Items [][]byte
}

// joinedEnd ends the list that Open begins, and its object.
const joinedEnd = "]}"

// Size returns the length in bytes.
func (j *Joined) Size() (n int64) {
	n = int64(len(j.Open) + len(joinedEnd) + len(j.Items) - 1)
	for _, item := range j.Items {
		n += int64(len(item))
	}
	return n
}

// part returns part n of the body: Open, then items and commas in turn, then the end. ok is false after the last
// part.
func (j *Joined) part(n int) (part []byte, ok bool) {
	switch {
	case n == 0:
		return []byte(j.Open), true
	case n < 2*len(j.Items) && n%2 == 0:
		return []byte{','}, true
	case n < 2*len(j.Items):
		return j.Items[n/2], true
	}
	return []byte(joinedEnd), n == 2*len(j.Items)
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
