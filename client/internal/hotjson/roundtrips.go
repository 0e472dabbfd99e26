package hotjson

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"unicode/utf8"
)

// depthMax bounds, less one, the nesting of parameters that are sent as JSON. The server permits 64 levels, and the
// request around the parameters takes up to seven: a batch with a complete whose follow-up has steps.
const depthMax = 58

// RoundTrips reports whether the server accepts b as JSON and returns the same bytes. It is stricter than json.Valid,
// because the server refuses invalid UTF-8, duplicate names in an object and unpaired surrogates, treats null as
// absent, and drops the space around a value.
func RoundTrips(b []byte) bool {
	if len(b) == 0 || len(bytes.TrimSpace(b)) != len(b) || string(b) == "null" || !utf8.Valid(b) {
		return false
	}
	if isPlain(b) {
		return true
	}
	if !json.Valid(b) {
		return false
	}
	// An unpaired surrogate is decoded as U+FFFD. If b contains both a real U+FFFD and a valid pair, it is sent as
	// bytes, which does no harm.
	surrogates := bytes.Contains(b, []byte(`\ud`)) || bytes.Contains(b, []byte(`\uD`))
	w := walk{dec: json.NewDecoder(bytes.NewReader(b)), refuseFFFD: surrogates}
	w.dec.UseNumber()
	return w.ok()
}

// walk checks each token of a valid document.
type walk struct {
	dec        *json.Decoder
	refuseFFFD bool
	open       []level
}

// level is one open array or object.
type level struct {
	names  map[string]struct{} // seen so far; nil in an array
	inName bool                // the next token of the object is a name
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
	return len(w.open) < depthMax // one less, for a value inside
}

func (w *walk) top() *level {
	if len(w.open) == 0 {
		return nil
	}
	return &w.open[len(w.open)-1]
}

// valueEnded notes that an object's next token is a name.
func (w *walk) valueEnded() {
	if top := w.top(); top != nil && top.names != nil {
		top.inName = true
	}
}
