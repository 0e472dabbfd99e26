// Package bodies has the bodies of requests that calls share, and of the answers to them.
package bodies

import "io"

// Joined is the body of a shared request: Open, the items of its calls with commas between them,
// and the end. The items do not change, so it is read as often as the request is sent, and is
// never in memory as a whole.
type Joined struct {
	Open  string // begins an object and a list in it
	Items [][]byte
}

// joinedEnd ends the list that Open begins, and its object.
const joinedEnd = "]}"

// Size is how many bytes it has.
func (j *Joined) Size() (n int64) {
	n = int64(len(j.Open) + len(joinedEnd) + len(j.Items) - 1)
	for _, item := range j.Items {
		n += int64(len(item))
	}
	return n
}

// part returns part n of it: an item and what is between it and the next by turns. ok is false
// past the last one.
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

// Reader returns one that begins at the beginning.
func (j *Joined) Reader() io.Reader { return &joinedReader{body: j} }

type joinedReader struct {
	body *Joined
	at   int    // the part after rest
	rest []byte // of the part before
}

// Read is that of io.Reader.
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
