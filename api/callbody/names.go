package callbody

import (
	"bytes"
	"cmp"
	"hash/maphash"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// The JSON decoder finds out by itself whether an object has a name twice, and keeps each
// name in a map for that: up to seventeen times the bytes of the body. So it does only in
// bodies up to namesFreeBytes, or with no more than namesFree names in objects that are
// open at the same time. Of others the names are kept as hashes.
const (
	namesFreeBytes = 32 << 10
	namesFree      = 4 << 10
)

// hasManyNames reports whether there are more than namesFree names in open objects
// somewhere before the first mistake in the body's syntax.
func hasManyNames(body []byte) bool {
	if len(body) <= namesFreeBytes {
		return false
	}
	var counts []int // of the objects that are open
	open := 0        // all of them together
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '"':
			if i = endOfString(body, i); i < 0 {
				return false
			}
		case '{':
			counts = append(counts, 0)
		case ':':
			if len(counts) == 0 {
				return false // no JSON
			}
			counts[len(counts)-1]++
			if open++; open > namesFree {
				return true
			}
		case '}':
			if len(counts) == 0 {
				return false
			}
			open -= counts[len(counts)-1]
			counts = counts[:len(counts)-1]
		}
		if len(counts) > nestedMax {
			return false // the decoder refuses it here
		}
	}
	return false
}

// nestedMax is more than any depth that a body may have.
const nestedMax = 10_000

// endOfString returns where the JSON string that begins at i ends, at its quote; -1: it
// does not.
func endOfString(body []byte, i int) int {
	for i++; ; i++ {
		quote := bytes.IndexByte(body[i:], '"')
		if quote < 0 {
			return -1
		}
		escape := bytes.IndexByte(body[i:i+quote], '\\')
		if escape < 0 {
			return i + quote
		}
		if i += escape + 1; i >= len(body) { // and what it escapes
			return -1
		}
	}
}

// nameAt is a name of an object: a hash of it, and where in the body it begins.
type nameAt struct{ hash, at uint32 }

// nameSeed is new with each process: nobody can make names that have the same hash.
var nameSeed = maphash.MakeSeed()

// findDuplicate returns where in the body an object has a name twice, as a JSON pointer;
// found is false if there is none before the first mistake in its syntax. It takes
// 8 bytes a name.
func findDuplicate(body []byte) (at jsontext.Pointer, found bool) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true))
	var names []nameAt // of the objects that are open
	var begins []int   // where in names those of each begin
	var scratch []byte
	for {
		kind := dec.PeekKind()
		if in, n := dec.StackIndex(dec.StackDepth()); in == jsontext.KindBeginObject && n%2 == 0 && kind == jsontext.KindString {
			name, err := dec.ReadValue()
			if err != nil {
				return "", false
			}
			size := len(name)
			if scratch, err = jsontext.AppendUnquote(scratch[:0], name); err != nil {
				return "", false
			}
			if len(names) == cap(names) { // append would grow it in smaller steps, and copy more
				names = slices.Grow(names, max(len(names), 1<<10))
			}
			names = append(names, nameAt{hash: uint32(maphash.Bytes(nameSeed, scratch)), at: uint32(int(dec.InputOffset()) - size)})
			continue
		}
		var err error
		switch kind {
		case jsontext.KindBeginObject, jsontext.KindEndObject, jsontext.KindBeginArray, jsontext.KindEndArray:
			_, err = dec.ReadToken()
		default:
			err = dec.SkipValue()
		}
		if err != nil {
			return "", false
		}
		switch kind {
		case jsontext.KindBeginObject:
			begins = append(begins, len(names))
		case jsontext.KindEndObject:
			last := len(begins) - 1
			if name, twice := sameName(body, names[begins[last]:]); twice {
				return dec.StackPointer().AppendToken(name), true
			}
			names, begins = names[:begins[last]], begins[:last]
		}
	}
}

// sameName returns a name that is among names twice. It sorts them.
func sameName(body []byte, names []nameAt) (name string, twice bool) {
	slices.SortFunc(names, func(a, b nameAt) int { return cmp.Compare(a.hash, b.hash) })
	for i := range names {
		for j := i + 1; j < len(names) && names[j].hash == names[i].hash; j++ {
			if name := textAt(body, names[i].at); name == textAt(body, names[j].at) {
				return name, true
			}
		}
	}
	return "", false
}

// textAt returns the text of the valid JSON string that begins there.
func textAt(body []byte, at uint32) string {
	text, _ := jsontext.AppendUnquote(nil, body[at:endOfString(body, int(at))+1])
	return string(text)
}
