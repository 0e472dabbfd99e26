package hotjson

import "bytes"

// namesMax bounds the names of one document that flatNames compares, and levelsMax its
// levels; others are walked by tokens.
const (
	namesMax  = 64
	levelsMax = 16
)

// nameWalk goes along a valid document without escapes and remembers the names of the
// objects that are open. It allocates nothing.
type nameWalk struct {
	names [namesMax][]byte
	n     int
	// starts are where in names those of each open level begin; inArray says what it is.
	starts  [levelsMax]int
	inArray [levelsMax]bool
	depth   int
}

// distinctNames reports whether no object of a valid document has a name twice. known
// is false if it cannot tell: there are escapes, or more names or levels than it takes.
func distinctNames(b []byte) (distinct, known bool) {
	if bytes.IndexByte(b, '\\') >= 0 {
		return false, false
	}
	var w nameWalk
	inName := false
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '{', '[':
			if w.depth == levelsMax {
				return false, false
			}
			w.starts[w.depth], w.inArray[w.depth] = w.n, b[i] == '['
			w.depth++
			inName = b[i] == '{'
		case '}', ']':
			w.depth--
			w.n = w.starts[w.depth]
			inName = false
		case ',':
			inName = !w.inArray[w.depth-1]
		case '"':
			end := i + 1 + bytes.IndexByte(b[i+1:], '"')
			if inName {
				if w.n == namesMax {
					return false, false
				}
				if w.has(b[i+1 : end]) {
					return false, true
				}
				w.names[w.n] = b[i+1 : end]
				w.n++
				inName = false
			}
			i = end
		}
	}
	return true, true
}

// has reports whether the innermost object has the name.
func (w *nameWalk) has(name []byte) bool {
	for _, other := range w.names[w.starts[w.depth-1]:w.n] {
		if bytes.Equal(other, name) {
			return true
		}
	}
	return false
}
