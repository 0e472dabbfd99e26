// Package pointer finds a value in a JSON text by a JSON pointer (RFC 6901), without decoding the rest.
package pointer

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

// DepthMax bounds the names of a pointer.
const DepthMax = 32

// Pointer names a value in a JSON text.
type Pointer []string

var errSyntax = errors.New("a pointer is /NAME, or /NAME/NAME and so on, with ~0 for ~ and ~1 for / in a name")

// Parse reads a pointer, which must not be empty.
func Parse(text string) (Pointer, error) {
	if !strings.HasPrefix(text, "/") || strings.Count(text, "/") > DepthMax {
		return nil, errSyntax
	}
	names := strings.Split(text[1:], "/")
	for i, name := range names {
		if rest := strings.NewReplacer("~0", "", "~1", "").Replace(name); strings.Contains(rest, "~") {
			return nil, errSyntax
		}
		names[i] = strings.ReplaceAll(strings.ReplaceAll(name, "~1", "/"), "~0", "~")
	}
	return names, nil
}

// Find returns the part of text, which must be valid JSON, with the value that p names; nil if p names none. If an
// object has a name twice, the first one counts.
func (p Pointer) Find(text []byte) []byte {
	at := skipSpace(text, 0)
	for _, name := range p {
		if at = child(text, at, name); at < 0 {
			return nil
		}
	}
	return text[at:skipValue(text, at)]
}

// child returns where the value with that name begins in the object, or with that index in the array, that begins at
// at. It returns -1 if there is none.
func child(text []byte, at int, name string) int {
	if at >= len(text) || text[at] != '{' && text[at] != '[' {
		return -1
	}
	object := text[at] == '{'
	for i := 0; ; i++ {
		at = skipSpace(text, at+1) // past the brace or the comma
		if at >= len(text) || text[at] == '}' || text[at] == ']' {
			return -1
		}
		found := strconv.Itoa(i) == name
		if object {
			end := skipValue(text, at)
			found = Equal(text[at:end], name)
			at = skipSpace(text, skipSpace(text, end)+1) // past the colon
		}
		if found {
			return at
		}
		if at = skipSpace(text, skipValue(text, at)); at >= len(text) || text[at] != ',' {
			return -1
		}
	}
}

// Equal reports whether the JSON value raw is the string text or, if it is not a string, is written exactly like text.
func Equal(raw []byte, text string) bool {
	switch {
	case len(raw) < 2 || raw[0] != '"':
		return string(raw) == text
	case bytes.IndexByte(raw, '\\') < 0:
		return string(raw[1:len(raw)-1]) == text
	}
	var decoded string
	return json.Unmarshal(raw, &decoded) == nil && decoded == text
}

func skipSpace(text []byte, at int) int {
	for at < len(text) && (text[at] == ' ' || text[at] == '\t' || text[at] == '\n' || text[at] == '\r') {
		at++
	}
	return at
}

// skipValue returns the index after the value at that index.
func skipValue(text []byte, at int) int {
	depth := 0
	for at < len(text) {
		switch text[at] {
		case '"':
			at = skipText(text, at)
		case '{', '[':
			depth++
			at++
		case '}', ']':
			depth--
			at++
		case ',', ':', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return at
			}
			at++
			continue
		default: // a number, true, false or null
			for at < len(text) && !ends(text[at]) {
				at++
			}
		}
		if depth <= 0 {
			return at
		}
	}
	return len(text)
}

// skipText returns the index after the string at that index.
func skipText(text []byte, at int) int {
	for at++; at < len(text); at++ {
		switch text[at] {
		case '\\':
			at++
		case '"':
			return at + 1
		}
	}
	return len(text)
}

// ends reports whether c ends a number, true, false or null.
func ends(c byte) bool {
	switch c {
	case ',', ':', ']', '}', ' ', '\t', '\n', '\r':
		return true
	}
	return false
}
