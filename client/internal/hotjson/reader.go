package hotjson

import (
	"bytes"
	"encoding/json"
	"math"
)

// Reader reads a document in one pass. The caller says what it expects; once something else comes, OK is false and
// the values read since are meaningless. Values that the caller skips are only checked for matching brackets and
// quotes.
type Reader struct {
	b   []byte
	at  int
	bad bool
}

// NewReader returns a reader of b, which it does not change.
func NewReader(b []byte) *Reader { return &Reader{b: b} }

// OK reports whether everything was as expected and the document was read to its end.
func (r *Reader) OK() bool {
	r.space()
	return !r.bad && r.at == len(r.b)
}

// Fail marks the document as not as expected.
func (r *Reader) Fail() { r.bad = true }

// Failed reports whether something was not as expected so far.
func (r *Reader) Failed() bool { return r.bad }

func (r *Reader) space() {
	for r.at < len(r.b) && (r.b[r.at] == ' ' || r.b[r.at] == '\n' || r.b[r.at] == '\t' || r.b[r.at] == '\r') {
		r.at++
	}
}

// takes skips c if it comes next.
func (r *Reader) takes(c byte) bool {
	r.space()
	if r.at < len(r.b) && r.b[r.at] == c {
		r.at++
		return true
	}
	return false
}

// want skips c, which has to come next.
func (r *Reader) want(c byte) { r.bad = !r.takes(c) || r.bad }

// Fields reads an object. It calls field with each name, and field reads the value. The name is valid until field
// returns. Names with escapes fail.
func (r *Reader) Fields(field func(name []byte)) {
	r.want('{')
	if r.takes('}') {
		return
	}
	for !r.bad {
		name, escaped := r.quoted()
		r.want(':')
		if r.bad = r.bad || escaped; r.bad {
			return
		}
		field(name)
		if !r.takes(',') {
			r.want('}')
			return
		}
	}
}

// Items reads an array, or null. It calls item for each element, and item reads it.
func (r *Reader) Items(item func()) {
	if r.Null() {
		return
	}
	r.want('[')
	if r.takes(']') {
		return
	}
	for !r.bad {
		item()
		if !r.takes(',') {
			r.want(']')
			return
		}
	}
}

// Null reads null, if that comes next.
func (r *Reader) Null() bool {
	r.space()
	if !bytes.HasPrefix(r.b[r.at:], []byte("null")) {
		return false
	}
	r.at += len("null")
	return true
}

// quoted reads a string and returns the bytes between its quotes.
func (r *Reader) quoted() (s []byte, escaped bool) {
	r.want('"')
	if r.bad {
		return nil, false
	}
	end := endOfString(r.b, r.at-1)
	if end < 0 {
		r.bad = true
		return nil, false
	}
	s, r.at = r.b[r.at:end], end+1
	return s, bytes.IndexByte(s, '\\') >= 0
}

// Text reads a string.
func (r *Reader) Text() string {
	s, escaped := r.quoted()
	if !escaped {
		return string(s)
	}
	var text string
	r.bad = json.Unmarshal(r.b[r.at-len(s)-2:r.at], &text) != nil || r.bad
	return text
}

// TextLike is Text, but does not allocate if the text equals before.
func (r *Reader) TextLike(before string) string {
	begin := *r
	if s, escaped := r.quoted(); !escaped && string(s) == before {
		return before
	}
	*r = begin
	return r.Text()
}

// Plain reads a string without escapes. The result shares the document's memory.
func (r *Reader) Plain() []byte {
	s, escaped := r.quoted()
	r.bad = r.bad || escaped
	return s
}

// Int reads an integer.
func (r *Reader) Int() int64 {
	negative := r.takes('-')
	var n int64
	begin := r.at
	for ; r.at < len(r.b) && r.b[r.at] >= '0' && r.b[r.at] <= '9'; r.at++ {
		digit := int64(r.b[r.at] - '0')
		if n > (math.MaxInt64-digit)/10 {
			r.bad = true
			return 0
		}
		n = n*10 + digit
	}
	r.bad = r.bad || r.at == begin
	if negative {
		return -n
	}
	return n
}

// Bool reads true or false.
func (r *Reader) Bool() bool {
	raw := string(r.Raw())
	r.bad = r.bad || raw != "true" && raw != "false"
	return raw == "true"
}

// Raw reads any value and returns its bytes in the document.
func (r *Reader) Raw() []byte {
	r.space()
	begin := r.at
	if r.at == len(r.b) {
		r.bad = true
		return nil
	}
	switch r.b[r.at] {
	case '"', '{', '[':
		if end := skip(r.b, r.at); end >= 0 {
			r.at = end
		} else {
			r.bad = true
		}
	default:
		for r.at < len(r.b) && isOfWord(r.b[r.at]) {
			r.at++
		}
		r.bad = r.bad || r.at == begin
	}
	return r.b[begin:r.at]
}

// isOfWord reports whether c may occur in a number, or in true, false and null.
func isOfWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c == '-' || c == '+' || c == '.' || c == 'E'
}

// WithField returns the object with raw added as its first field. json.RawMessage would not do, because Marshal
// removes its spaces and changes its escapes, and the bytes must not change.
func WithField(name string, raw, object []byte) []byte {
	b := make([]byte, 0, len(name)+len(raw)+len(object)+4)
	b = append(b, '{', '"')
	b = append(b, name...)
	b = append(b, '"', ':')
	b = append(b, raw...)
	if len(object) > len("{}") {
		b = append(b, ',')
	}
	return append(b, object[1:]...)
}
