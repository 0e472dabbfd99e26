package callbody

import (
	"reflect"
	"slices"
	"strings"

	"github.com/claimq/claimq/api/refuse"
)

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

// nearest returns the name that text was probably meant to be, or "": one of which text is a word (type of
// task_type), or which begins with text or the other way round, or which differs in up to slipMax letters. text
// itself is excluded, because it is a known name in the wrong place.
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
