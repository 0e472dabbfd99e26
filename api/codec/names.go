package codec

import (
	"bytes"
	"cmp"
	"hash/maphash"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/claimq/claimq/api/refuse"
)

// To find duplicate names, the JSON decoder keeps each name of an object in a map, which can take seventeen times the
// size of the body. It therefore does so only for bodies up to namesFreeBytes, or with at most namesFree names in
// open objects. For others hashes of the names are compared.
const (
	namesFreeBytes = 32 << 10
	namesFree      = 4 << 10
)

// hasManyNames reports whether, before the first syntax error, more than namesFree names are in open objects at the
// same time.
func hasManyNames(body []byte) bool {
	if len(body) <= namesFreeBytes {
		return false
	}
	var counts []int // per open object
	open := 0        // their sum
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
				return false // not JSON
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

// nestedMax is more than the depth of any accepted body.
const nestedMax = 10_000

// endOfString returns the index of the quote that ends the JSON string at i, or -1.
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
		if i += escape + 1; i >= len(body) { // and the escaped character
			return -1
		}
	}
}

// nameAt is a name of an object: its hash, and its offset in the body.
type nameAt struct{ hash, at uint32 }

// nameSeed is random for each process, so that clients cannot construct names with equal hashes.
var nameSeed = maphash.MakeSeed()

// findDuplicate returns the JSON pointer of a duplicate name. found is false if there is no duplicate before the first
// syntax error. It takes 8 bytes for each name.
func findDuplicate(body []byte) (at jsontext.Pointer, found bool) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true))
	var names []nameAt // of the open objects
	var begins []int   // the index in names where each of them begins
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

// sameName returns a name that occurs twice in names. It sorts names.
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

// textAt returns the text of the valid JSON string at that offset.
func textAt(body []byte, at uint32) string {
	text, _ := jsontext.AppendUnquote(nil, body[at:endOfString(body, int(at))+1])
	return string(text)
}

// slipMax bounds the wrong letters of a name for which the right one is suggested.
const slipMax = 2

// unknownOf is Decoder.Unknown for a field of B, and suggests the field of B that was probably meant.
func unknownOf[B any](d *Decoder, name []byte) *refuse.Refusal {
	return d.unknownAmong(name, namesOf(reflect.TypeFor[B]())...)
}

// unknownAmong is Decoder.Unknown with the given valid names.
func (d *Decoder) unknownAmong(name []byte, names ...string) *refuse.Refusal {
	meant := nearest(string(name), names)
	bad := d.Unknown(name)
	if meant != "" && !bad.Syntax {
		bad.Advice = "Did you mean " + meant + "? Names are case-sensitive"
	}
	return bad
}

// namesOf returns the JSON names of a body's fields.
func namesOf(body reflect.Type) []string {
	var names []string
	for f := range body.Fields() {
		if f.Anonymous {
			names = append(names, namesOf(f.Type)...)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// namesBut is namesOf without some of them.
func namesBut(body reflect.Type, others ...string) []string {
	return slices.DeleteFunc(namesOf(body), func(name string) bool { return slices.Contains(others, name) })
}

// nearest returns the name that text was probably meant to be, or "". A name qualifies if text is one of its words
// (type of task_type), if one of the two begins with the other, or if they differ in up to slipMax letters. text itself
// is excluded, because it is a known name in the wrong place.
func nearest(text string, names []string) string {
	if len(text) < slipMax || len(text) > 64 {
		return ""
	}
	text = strings.ToLower(text)
	best, least := "", slipMax+1
	for _, name := range names {
		switch slips := distance(text, name); {
		case name == text:
			return ""
		case least > 0 && strings.Contains("_"+name+"_", "_"+text+"_"):
			best, least = name, 0
		case slips < least && slips < len(text)-1:
			best, least = name, slips
		case least > slipMax && len(text) > slipMax && strings.HasPrefix(name, text):
			best, least = name, slipMax
		}
	}
	return best
}

// distance returns how many letters must be inserted, removed or changed to turn a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1) // from the beginning of a so far to each beginning of b
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := corner
			if a[i] != b[j] {
				change++
			}
			corner = row[j+1]
			row[j+1] = min(change, corner+1, row[j]+1)
		}
	}
	return row[len(b)]
}
