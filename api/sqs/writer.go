package sqs

import (
	"crypto/md5"
	"encoding/hex"
	"strconv"
	"unicode/utf8"

	"github.com/claimq/claimq/api/jsonout"
)

// writer writes an answer in either form. A member without a value is left out.
type writer struct {
	b   []byte
	xml bool
}

// comma separates a member or element of JSON from the one before.
func (w *writer) comma() {
	if last := w.b[len(w.b)-1]; last != '{' && last != '[' {
		w.b = append(w.b, ',')
	}
}

// name writes the name of a member of JSON, which has nothing to escape.
func (w *writer) name(name string) {
	w.comma()
	w.b = append(append(append(w.b, '"'), name...), '"', ':')
}

func (w *writer) open(name string) { w.b = append(append(append(w.b, '<'), name...), '>') }
func (w *writer) end(name string)  { w.b = append(append(append(w.b, '<', '/'), name...), '>') }

func (w *writer) text(name, s string) { write(w, name, s) }

// write writes a string, unless it is empty.
func write[T ~string | ~[]byte](w *writer, name string, s T) {
	switch {
	case len(s) == 0:
	case w.xml:
		w.open(name)
		w.b = appendXML(w.b, s)
		w.end(name)
	default:
		w.name(name)
		w.b = jsonout.String(w.b, s)
	}
}

// word writes a string that has nothing to escape, unless it is empty.
func (w *writer) word(name, s string) {
	switch {
	case s == "":
	case w.xml:
		w.open(name)
		w.b = append(w.b, s...)
		w.end(name)
	default:
		w.name(name)
		w.b = append(append(append(w.b, '"'), s...), '"')
	}
}

// sum writes a sum in hexadecimal.
func (w *writer) sum(name string, sum [md5.Size]byte) {
	var text [2 * md5.Size]byte
	hex.Encode(text[:], sum[:])
	w.word(name, string(text[:]))
}

func (w *writer) boolean(name string, v bool) { w.bare(name, strconv.FormatBool(v)) }

func (w *writer) number(name string, n int64) { w.bare(name, strconv.FormatInt(n, 10)) }

// bare writes a value that has no quotes in JSON, such as a number.
func (w *writer) bare(name, word string) {
	if w.xml {
		w.text(name, word)
		return
	}
	w.name(name)
	w.b = append(w.b, word...)
}

// object writes a member of JSON that is an object.
func (w *writer) object(name string, fields func()) {
	w.name(name)
	w.b = append(w.b, '{')
	fields()
	w.b = append(w.b, '}')
}

// list writes n objects: a member name of JSON, or elements one after the other in XML.
func (w *writer) list(name, element string, n int, fields func(i int)) {
	if !w.xml {
		w.name(name)
		w.b = append(w.b, '[')
	}
	for i := range n {
		switch {
		case w.xml:
			w.open(element)
			fields(i)
			w.end(element)
		default:
			w.comma()
			w.b = append(w.b, '{')
			fields(i)
			w.b = append(w.b, '}')
		}
	}
	if !w.xml {
		w.b = append(w.b, ']')
	}
}

// texts writes a list of strings, unless it is empty.
func (w *writer) texts(name, element string, texts []string) {
	switch {
	case len(texts) == 0:
	case w.xml:
		for _, s := range texts {
			w.text(element, s)
		}
	default:
		w.name(name)
		w.b = jsonout.Strings(w.b, "", texts)
	}
}

// pairs writes a map of strings, unless it is empty.
func (w *writer) pairs(name, element, key string, pairs []Pair) {
	switch {
	case len(pairs) == 0:
	case w.xml:
		for _, p := range pairs {
			w.open(element)
			w.text(key, p.Name)
			w.open("Value")
			w.b = appendXML(w.b, p.Value)
			w.end("Value")
			w.end(element)
		}
	default:
		w.object(name, func() {
			for _, p := range pairs {
				w.comma()
				w.b = jsonout.String(append(jsonout.String(w.b, p.Name), ':'), p.Value)
			}
		})
	}
}

// appendXML appends a string. Characters that an XML reader would change, such as a raw carriage return, become
// references, and those that XML cannot carry, which only other protocols could have sent, the replacement character.
func appendXML[T ~string | ~[]byte](b []byte, s T) []byte {
	start := 0
	for i := 0; i < len(s); {
		if xmlPlain[s[i]] {
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(string(s[i:min(len(s), i+utf8.UTFMax)]))
		as := string(utf8.RuneError)
		switch {
		case r < utf8.RuneSelf && inXML(r):
			as = xmlReferences[r]
		case inXML(r) && (r != utf8.RuneError || n > 1):
			i += n
			continue
		}
		b = append(append(b, s[start:i]...), as...)
		i += n
		start = i
	}
	return append(b, s[start:]...)
}

var xmlReferences = map[rune]string{'<': "&lt;", '>': "&gt;", '&': "&amp;", '"': "&quot;", '\r': "&#xD;"}

// xmlPlain has the bytes that are whole characters and need no reference.
var xmlPlain = func() (plain [256]bool) {
	for c := range rune(utf8.RuneSelf) {
		plain[c] = inXML(c) && xmlReferences[c] == ""
	}
	return plain
}()

// inXML reports whether XML can carry a character.
func inXML(r rune) bool {
	return (r >= ' ' || r == '\t' || r == '\n' || r == '\r') && r != 0xFFFE && r != 0xFFFF
}

// validXML reports whether XML can carry all characters of s. It skips eight bytes at a time where none of them can be
// part of a character that XML cannot carry.
func validXML[T ~string | ~[]byte](s T) bool {
	for i := 0; i < len(s); i++ {
		for len(s)-i >= 8 && plainWord(word(s[i:i+8])) {
			i += 8
		}
		if i == len(s) {
			break
		}
		switch c := s[i]; {
		case c < ' ' && c != '\t' && c != '\n' && c != '\r':
			return false
		case c == 0xEF && len(s)-i > 2 && s[i+1] == 0xBF && s[i+2] >= 0xBE: // U+FFFE and U+FFFF
			return false
		}
	}
	return true
}

// word returns eight bytes as a number.
func word[T ~string | ~[]byte](s T) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// plainWord reports whether none of the eight bytes in w is below a space or is the one that U+FFFE and U+FFFF begin
// with. Such a byte causes a carry into its highest bit.
func plainWord(w uint64) bool {
	const each, highest = 0x0101010101010101, 0x8080808080808080
	marks := w ^ 0xEF*each
	return ((w-' '*each)&^w|(marks-each)&^marks)&highest == 0
}
