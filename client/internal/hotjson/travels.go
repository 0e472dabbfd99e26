package hotjson

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"unicode/utf8"
)

// depthMax is how deep parameters may be nested to travel as JSON, less one:
// the server allows 64, seven of which the request around them takes at most, a
// batch with a complete whose follow-up has steps.
const depthMax = 58

// Travels reports whether the server takes b as JSON and gives the same
// bytes back. It is stricter than json.Valid: the server refuses bad UTF-8,
// names that occur twice in an object and halves of surrogate pairs, takes
// null for absent, and drops the space around a value.
func Travels(b []byte) bool {
	if len(b) == 0 || len(bytes.TrimSpace(b)) != len(b) || string(b) == "null" || !utf8.Valid(b) || !json.Valid(b) {
		return false
	}
	if distinct, known := distinctNames(b); known {
		return distinct
	}
	// A half of a surrogate pair is decoded as U+FFFD. b may have an honest
	// U+FFFD beside an honest pair; then it travels as bytes, which does no harm.
	surrogates := bytes.Contains(b, []byte(`\ud`)) || bytes.Contains(b, []byte(`\uD`))
	w := walk{dec: json.NewDecoder(bytes.NewReader(b)), refuseFFFD: surrogates}
	w.dec.UseNumber()
	return w.ok()
}

// walk looks at each token of a valid document.
type walk struct {
	dec        *json.Decoder
	refuseFFFD bool
	open       []level
}

// level is one open array or object.
type level struct {
	names  map[string]struct{} // seen so far; nil in an array
	inName bool                // an object's next token is a name
}

func (w *walk) ok() bool {
	for {
		token, err := w.dec.Token()
		if err == io.EOF {
			return true
		}
		if err != nil || !w.take(token) {
			return false
		}
	}
}

func (w *walk) take(token json.Token) bool {
	switch v := token.(type) {
	case json.Delim:
		return w.takeDelim(v)
	case string:
		if w.refuseFFFD && strings.ContainsRune(v, utf8.RuneError) {
			return false
		}
		if top := w.top(); top != nil && top.inName {
			if _, twice := top.names[v]; twice {
				return false
			}
			top.names[v] = struct{}{}
			top.inName = false
			return true
		}
	}
	w.valueEnded()
	return true
}

func (w *walk) takeDelim(d json.Delim) bool {
	switch d {
	case '{':
		w.open = append(w.open, level{names: map[string]struct{}{}, inName: true})
	case '[':
		w.open = append(w.open, level{})
	default:
		w.open = w.open[:len(w.open)-1]
		w.valueEnded()
	}
	return len(w.open) < depthMax // one less for a value inside
}

func (w *walk) top() *level {
	if len(w.open) == 0 {
		return nil
	}
	return &w.open[len(w.open)-1]
}

// valueEnded makes a name due in an object.
func (w *walk) valueEnded() {
	if top := w.top(); top != nil && top.names != nil {
		top.inName = true
	}
}
