package hotjson

import "bytes"

// namesMax bounds the names, and levelsMax the nesting, of documents that distinctNames compares; others are walked
// token by token.
const (
	namesMax  = 64
	levelsMax = 16
)

// nameWalk walks a valid document without escapes and keeps the names of the open objects. It allocates nothing.
type nameWalk struct {
	names [namesMax][]byte
	n     int
	// starts are the indexes in names where the names of each open level begin; inArray says which levels are arrays.
	starts  [levelsMax]int
	inArray [levelsMax]bool
	depth   int
}

// distinctNames reports whether every object of a valid document has distinct names. known is false if it cannot
// tell, because there are escapes or too many names or levels.
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
