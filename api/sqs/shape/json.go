package shape

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// ReadJSON reads a body of AWS JSON, and calls fn with its value, which is good until fn returns. An empty body has no
// members, and one that is there twice has its last value.
func ReadJSON(body []byte, fn func(v *Value)) error {
	p := jsonReaders.Get().(*jsonReader)
	defer p.free()
	v, err := p.read(body)
	if err != nil {
		return malformed("The request body is not valid JSON: " + err.Error())
	}
	fn(&v)
	return nil
}

var jsonReaders = sync.Pool{New: func() any { return new(jsonReader) }}

// jsonReader reads values. Once it has failed it reads nothing more.
type jsonReader struct {
	dec   jsontext.Decoder
	buf   bytes.Buffer
	body  string  // the strings that are read share its memory
	open  []Value // of the objects and lists that have not ended
	ended []Value // of the others
	count int     // of values
	err   error
}

// valuesKept bounds the room for values that a reader keeps.
const valuesKept = 256

// free returns the reader to its pool, without what it has read.
func (p *jsonReader) free() {
	if cap(p.open)+cap(p.ended) > valuesKept {
		p.open, p.ended = nil, nil
	}
	clear(p.ended)
	p.buf, p.body, p.open, p.ended, p.count, p.err = bytes.Buffer{}, "", p.open[:0], p.ended[:0], 0, nil
	jsonReaders.Put(p)
}

func (p *jsonReader) read(body []byte) (Value, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return Value{Kind: Object}, nil
	}
	p.body, p.buf = string(body), *bytes.NewBuffer(body)
	p.dec.Reset(&p.buf, jsontext.AllowDuplicateNames(true))
	v := p.value(0)
	if _, err := p.dec.ReadToken(); p.err == nil && !errors.Is(err, io.EOF) {
		return v, errors.New("more after its end")
	}
	if p.err == nil && v.Kind != Object {
		return v, errors.New("no object")
	}
	return v, p.err
}

// text reads a scalar, and returns it without its quotes.
func (p *jsonReader) text() string {
	raw, err := p.dec.ReadValue()
	if err != nil {
		p.err = err
		return ""
	}
	end := int(p.dec.InputOffset())
	s := p.body[end-len(raw) : end]
	if s[0] != '"' {
		return s
	}
	if strings.IndexByte(s, '\\') >= 0 {
		unquoted, _ := jsontext.AppendUnquote(nil, s)
		return string(unquoted)
	}
	return s[1 : len(s)-1]
}

func (p *jsonReader) value(depth int) (v Value) {
	p.count++
	switch {
	case p.err != nil:
		return v
	case depth > depthMax:
		p.err = errors.New("too many levels")
		return v
	case p.count > ValuesMax:
		p.err = errors.New("too many values")
		return v
	}
	switch p.dec.PeekKind() {
	case jsontext.KindBeginObject:
		v.Kind, v.Items = Object, p.items(depth, jsontext.KindEndObject)
	case jsontext.KindBeginArray:
		v.Kind, v.Items = List, p.items(depth, jsontext.KindEndArray)
	case jsontext.KindNull:
		p.text()
	case jsontext.KindNumber:
		v.Kind, v.Text = Number, p.text()
	case jsontext.KindTrue, jsontext.KindFalse:
		v.Kind, v.Text = Boolean, p.text()
	default:
		v.Kind, v.Text = Text, p.text()
	}
	return v
}

// items reads an object or a list to its end.
func (p *jsonReader) items(depth int, end jsontext.Kind) []Value {
	mark := len(p.open)
	p.skip()
	for p.err == nil && p.dec.PeekKind() != end {
		name := ""
		if end == jsontext.KindEndObject {
			name = p.text()
		}
		item := p.value(depth + 1)
		item.Name = name
		p.open = append(p.open, item)
	}
	p.skip()
	first := len(p.ended)
	p.ended = append(p.ended, p.open[mark:]...)
	clear(p.open[mark:]) // a reader that is kept has no text of its last request
	p.open = p.open[:mark]
	return p.ended[first:]
}

// skip reads the token at the beginning or the end of an object or a list.
func (p *jsonReader) skip() {
	if p.err == nil {
		_, p.err = p.dec.ReadToken()
	}
}
