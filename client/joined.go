package client

import "io"

// joined is the body of a shared request: open, the items of its calls with commas between
// them, and the end. The items do not change, so it is read as often as the request is sent,
// and is never in memory as a whole.
type joined struct {
	open  string
	rides []*ride
}

// joinedEnd ends the list that open begins, and its object.
const joinedEnd = "]}"

// size is how many bytes it has.
func (j *joined) size() (n int64) {
	n = int64(len(j.open) + len(joinedEnd) + len(j.rides) - 1)
	for _, r := range j.rides {
		n += int64(len(r.Item))
	}
	return n
}

// part returns part n of it: an item and what is between it and the next by turns. ok is false
// past the last one.
func (j *joined) part(n int) (part []byte, ok bool) {
	switch {
	case n == 0:
		return []byte(j.open), true
	case n < 2*len(j.rides) && n%2 == 0:
		return []byte{','}, true
	case n < 2*len(j.rides):
		return j.rides[n/2].Item, true
	}
	return []byte(joinedEnd), n == 2*len(j.rides)
}

// joinedReader reads it from the beginning.
type joinedReader struct {
	*joined
	at   int    // the part after rest
	rest []byte // of the part before
}

// Read is that of io.Reader.
func (r *joinedReader) Read(p []byte) (n int, err error) {
	for n < len(p) {
		if len(r.rest) == 0 {
			part, ok := r.part(r.at)
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
