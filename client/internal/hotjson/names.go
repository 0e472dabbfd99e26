package hotjson

import (
	"bytes"
	"encoding/json"
)

// isPlain gives up beyond namesMax names of open objects, or levelsMax levels of nesting.
const (
	namesMax  = 64
	levelsMax = 16
)

// isPlain reports whether b is valid JSON without escapes, in which every object has distinct names. It also returns
// false if it cannot tell, because there are escapes or too many names or levels. It allocates nothing.
func isPlain(b []byte) bool {
	w := plainWalk{b: b}
	return w.value(0) == len(b)
}

// plainWalk walks a document and keeps the names of the open objects. Its methods take the place where something
// begins and return where that ends, or -1 if it is not as expected.
type plainWalk struct {
	b     []byte
	names [namesMax][]byte
	n     int
	depth int
}

func (w *plainWalk) value(at int) int {
	at = w.space(at)
	if at == len(w.b) {
		return -1
	}
	switch w.b[at] {
	case '"':
		return w.text(at)
	case '{':
		return w.list(at, '}')
	case '[':
		return w.list(at, ']')
	}
	end := at
	for end < len(w.b) && isOfWord(w.b[end]) {
		end++
	}
	if !json.Valid(w.b[at:end]) {
		return -1
	}
	return end
}

// list walks the object or array that ends with last.
func (w *plainWalk) list(at int, last byte) int {
	if w.depth == levelsMax {
		return -1
	}
	w.depth++
	first := w.n // the object's names begin there
	at = w.space(at + 1)
	if at < len(w.b) && w.b[at] == last {
		w.depth--
		return at + 1
	}
	for {
		if last == '}' {
			at = w.name(at, first)
		}
		if at >= 0 {
			at = w.value(at)
		}
		if at < 0 {
			return -1
		}
		at = w.space(at)
		switch {
		case at == len(w.b):
			return -1
		case w.b[at] == last:
			w.depth, w.n = w.depth-1, first
			return at + 1
		case w.b[at] != ',':
			return -1
		}
		at++
	}
}

// name walks a name and its colon. first is where the names of its object begin.
func (w *plainWalk) name(at, first int) int {
	at = w.space(at)
	end := w.text(at)
	if end < 0 || w.n == namesMax {
		return -1
	}
	name := w.b[at:end]
	for _, other := range w.names[first:w.n] {
		if bytes.Equal(other, name) {
			return -1
		}
	}
	w.names[w.n] = name
	w.n++
	if at = w.space(end); at == len(w.b) || w.b[at] != ':' {
		return -1
	}
	return at + 1
}

// text walks a string.
func (w *plainWalk) text(at int) int {
	if at == len(w.b) || w.b[at] != '"' {
		return -1
	}
	n := bytes.IndexByte(w.b[at+1:], '"')
	if n < 0 {
		return -1
	}
	end := at + 1 + n
	for _, c := range w.b[at+1 : end] {
		if c < ' ' || c == '\\' {
			return -1
		}
	}
	return end + 1
}

func (w *plainWalk) space(at int) int {
	for at < len(w.b) && (w.b[at] == ' ' || w.b[at] == '\n' || w.b[at] == '\t' || w.b[at] == '\r') {
		at++
	}
	return at
}
