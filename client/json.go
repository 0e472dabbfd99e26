package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// jsonDepthMax is how deep parameters may be nested to travel as JSON, less one:
// the server allows 64, seven of which the request around them takes at most, a
// batch with a complete whose follow-up has steps.
const jsonDepthMax = 58

// travelsAsJSON reports whether the server takes b as JSON and gives the same
// bytes back. It is stricter than json.Valid: the server refuses bad UTF-8,
// names that occur twice in an object and halves of surrogate pairs, takes
// null for absent, and drops the space around a value.
func travelsAsJSON(b []byte) bool {
	if len(b) == 0 || len(bytes.TrimSpace(b)) != len(b) || string(b) == "null" || !utf8.Valid(b) || !json.Valid(b) {
		return false
	}
	// A half of a surrogate pair is decoded as U+FFFD. b may have an honest
	// U+FFFD beside an honest pair; then it travels as bytes, which does no harm.
	surrogates := bytes.Contains(b, []byte(`\ud`)) || bytes.Contains(b, []byte(`\uD`))
	w := jsonWalk{dec: json.NewDecoder(bytes.NewReader(b)), refuseFFFD: surrogates}
	w.dec.UseNumber()
	return w.ok()
}

// jsonWalk looks at each token of a valid document.
type jsonWalk struct {
	dec        *json.Decoder
	refuseFFFD bool
	open       []jsonLevel
}

// jsonLevel is one open array or object.
type jsonLevel struct {
	names  map[string]struct{} // seen so far; nil in an array
	inName bool                // an object's next token is a name
}

func (w *jsonWalk) ok() bool {
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

func (w *jsonWalk) take(token json.Token) bool {
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

func (w *jsonWalk) takeDelim(d json.Delim) bool {
	switch d {
	case '{':
		w.open = append(w.open, jsonLevel{names: map[string]struct{}{}, inName: true})
	case '[':
		w.open = append(w.open, jsonLevel{})
	default:
		w.open = w.open[:len(w.open)-1]
		w.valueEnded()
	}
	return len(w.open) < jsonDepthMax // one less for a value inside
}

func (w *jsonWalk) top() *jsonLevel {
	if len(w.open) == 0 {
		return nil
	}
	return &w.open[len(w.open)-1]
}

// valueEnded makes a name due in an object.
func (w *jsonWalk) valueEnded() {
	if top := w.top(); top != nil && top.names != nil {
		top.inName = true
	}
}

// marshal is json.Marshal that leaves <, > and & as they are.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// withRaw encodes v, a struct, with raw as one more field in front.
func withRaw(name string, raw []byte, v any) ([]byte, error) {
	object, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	return withField(name, raw, object), nil
}

// withField returns the object with raw as one more field in front.
// json.RawMessage would not do: Marshal strips its spaces and changes its
// escapes, and the bytes are to be kept as given.
func withField(name string, raw, object []byte) []byte {
	b := make([]byte, 0, len(name)+len(raw)+len(object)+4)
	b = append(b, '{', '"')
	b = append(b, name...)
	b = append(b, '"', ':')
	b = append(b, raw...)
	if len(object) > len("{}") {
		b = append(b, ',')
	}
	return append(b, object[1:]...)
}
