package codec

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
)

// Decoder reads one request body: a JSON object whose fields the caller reads one by one with next and one of the
// readers. It is strict: names are case-sensitive and unique in each object, text is UTF-8, and nothing follows the
// object. null counts as absent, so that readers return a zero value and false for it.
//
// A refusal of a field is returned after its value was read, so that the rest of the body can still be skipped,
// unless the refusal is about syntax. What readers return shares no memory with the body, except raw and bytes where
// they say so.
type Decoder struct {
	dec     jsontext.Decoder
	buf     bytes.Buffer
	scout   jsontext.Decoder // reads ahead in the body, through rest
	rest    bytes.Buffer
	body    []byte
	scratch []byte
	limits  *Limits
	code    wire.Code // for the refusal of a field
	at      []place   // the path of the current object in the body
	submits int       // tasks that the body submits so far, including steps

	// A body with many names is checked in advance for duplicate names; duplicate is then its refusal. Otherwise the JSON
	// decoder checks that.
	duplicate *refuse.Refusal
	options   []jsontext.Options
}

// anyNames are the options of a decoder that does not check for duplicate names.
var anyNames = []jsontext.Options{jsontext.AllowDuplicateNames(true)}

// place is one step of the path to an object: a field's name and, if the field is an array, the index in it, else -1.
type place struct {
	name  string
	index int
}

// kindString saves other files an import.
const kindString = jsontext.KindString

var decoders = sync.Pool{New: func() any { return new(Decoder) }}

// NewDecoder returns a decoder of body. The caller must call Free.
func NewDecoder(body []byte, limits *Limits) *Decoder {
	d := decoders.Get().(*Decoder)
	d.body, d.limits, d.code, d.at, d.submits = body, limits, wire.CodeInvalidRequest, d.at[:0], 0
	d.buf = *bytes.NewBuffer(body)
	d.duplicate, d.options = nil, nil
	if hasManyNames(body) {
		d.options = anyNames
		if at, found := findDuplicate(body); found {
			d.duplicate = refuseDuplicate(at)
		}
	}
	d.dec.Reset(&d.buf, d.options...)
	return d
}

// Free returns the decoder to the pool; it must not be used afterwards.
func (d *Decoder) Free() {
	const scratchMax = 64 << 10
	d.body, d.limits, d.buf, d.rest = nil, nil, bytes.Buffer{}, bytes.Buffer{}
	if cap(d.scratch) > scratchMax {
		d.scratch = nil
	}
	decoders.Put(d)
}

// isBlank reports whether a body is empty or only space. It then has no fields.
func isBlank(body []byte) bool { return len(bytes.Trim(body, " \t\r\n")) == 0 }

// begin reads the start of the object that the body must be. some is false if the body is blank.
func (d *Decoder) begin() (some bool, bad *refuse.Refusal) {
	switch {
	case isBlank(d.body):
		return false, nil
	case d.duplicate != nil:
		return false, d.duplicate
	}
	if kind := d.dec.PeekKind(); kind != jsontext.KindBeginObject && kind != jsontext.KindInvalid {
		// PeekKind goes by the first byte: task_type=x is not a boolean.
		if bad := d.skip(); bad != nil {
			return false, bad
		}
		return false, &refuse.Refusal{Code: wire.CodeInvalidRequest, Text: "The body is " + kindName(kind) + ", not a JSON object", Advice: refuse.AdviceSyntax, Syntax: true}
	}
	if _, err := d.dec.ReadToken(); err != nil {
		return false, d.syntax(err)
	}
	return true, nil
}

// Fields reads a whole body: it calls field with each name, and field reads the value. It stops at the first refusal.
// A blank body has no fields.
func (d *Decoder) Fields(field func(name []byte) *refuse.Refusal) *refuse.Refusal {
	some, bad := d.begin()
	if bad != nil || !some {
		return bad
	}
	for {
		name, more, bad := d.next()
		if bad != nil {
			return bad
		}
		if !more {
			return d.end()
		}
		if bad := field(name); bad != nil {
			return bad
		}
	}
}

// next returns the name of the next field of the current object, valid until the next call. more is false after the
// last field.
func (d *Decoder) next() (name []byte, more bool, bad *refuse.Refusal) {
	if d.dec.PeekKind() == jsontext.KindEndObject {
		_, err := d.dec.ReadToken()
		if err != nil {
			return nil, false, d.syntax(err)
		}
		return nil, false, nil
	}
	name, bad = d.value()
	if bad != nil {
		return nil, false, bad
	}
	return d.unquote(name), true, nil
}

// end checks that nothing follows the object.
func (d *Decoder) end() *refuse.Refusal {
	_, err := d.dec.ReadToken()
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return d.syntax(err)
	}
	return &refuse.Refusal{Code: wire.CodeInvalidRequest, Text: "The body goes on after the JSON object", Advice: refuse.AdviceSyntax, Syntax: true}
}

// skipObject skips the rest of the current object, including its end.
func (d *Decoder) skipObject() *refuse.Refusal { return d.skipOut(d.dec.StackDepth()) }

// skipOut skips the rest of the object or array at that depth, including its end, however deep in it the decoder is.
func (d *Decoder) skipOut(depth int) *refuse.Refusal {
	for d.dec.StackDepth() >= depth {
		switch d.dec.PeekKind() {
		case jsontext.KindEndObject, jsontext.KindEndArray:
			if _, err := d.dec.ReadToken(); err != nil {
				return d.syntax(err)
			}
		default:
			if bad := d.skip(); bad != nil {
				return bad
			}
		}
	}
	return nil
}

// ahead looks for a field of the object that has just begun, and returns its text, "" if it is not a string. given is
// false if the field is missing or cannot be read.
func (d *Decoder) ahead(field string) (text string, given bool) {
	d.rest = *bytes.NewBuffer(d.body[d.dec.InputOffset()-1:])
	d.scout.Reset(&d.rest, d.options...)
	if _, err := d.scout.ReadToken(); err != nil {
		return "", false
	}
	for d.scout.PeekKind() == jsontext.KindString {
		name, err := d.scout.ReadValue()
		if err != nil {
			return "", false
		}
		if string(d.unquote(name)) != field {
			if d.scout.SkipValue() != nil {
				return "", false
			}
			continue
		}
		value, err := d.scout.ReadValue()
		switch {
		case err != nil, value.Kind() == jsontext.KindNull:
			return "", false
		case value.Kind() != jsontext.KindString:
			return "", true
		}
		return string(d.unquote(value)), true
	}
	return "", false
}

// IsNull reports whether the next value is null.
func (d *Decoder) IsNull() bool { return d.dec.PeekKind() == jsontext.KindNull }

func (d *Decoder) skip() *refuse.Refusal {
	if err := d.dec.SkipValue(); err != nil {
		return d.syntax(err)
	}
	return nil
}

// value returns the next value's bytes as sent, pointing into the body.
func (d *Decoder) value() ([]byte, *refuse.Refusal) {
	v, err := d.dec.ReadValue()
	if err != nil {
		return nil, d.syntax(err)
	}
	end := int(d.dec.InputOffset())
	return d.body[end-len(v) : end], nil
}

// unquote returns the text of a valid JSON string: a part of the body, or of the scratch buffer if it has escapes.
func (d *Decoder) unquote(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	d.scratch, _ = jsontext.AppendUnquote(d.scratch[:0], quoted)
	return d.scratch
}

// enter begins a field of the current object in the path, and leave ends it.
func (d *Decoder) enter(name string, index int) { d.at = append(d.at, place{name, index}) }

func (d *Decoder) leave() { d.at = d.at[:len(d.at)-1] }

// path returns the path of a field of the current object; "" means the object itself.
func (d *Decoder) path(field string) string {
	if len(d.at) == 0 {
		return field
	}
	var b strings.Builder
	for i, p := range d.at {
		if i > 0 {
			b.WriteByte('.')
		}
		b.WriteString(p.name)
		if p.index >= 0 {
			b.WriteString("[" + strconv.Itoa(p.index) + "]")
		}
	}
	if field != "" {
		b.WriteString("." + field)
	}
	return b.String()
}

// Invalid returns the refusal of a field's value; allowed describes the valid ones.
func (d *Decoder) Invalid(field, allowed string) *refuse.Refusal {
	return d.wrong(field, "must be "+allowed)
}

// wrong returns the refusal of a value; why says what is wrong with it.
func (d *Decoder) wrong(field, why string) *refuse.Refusal {
	return d.refuse(field, "Invalid "+d.path(field)+": "+why, refuse.AdviceField)
}

func (d *Decoder) refuse(field, text, advice string) *refuse.Refusal {
	return &refuse.Refusal{Code: d.code, Field: d.path(field), Text: text, Advice: advice}
}

// changes refuses a body that changes nothing; fields are those that could.
func (d *Decoder) changes(some bool, fields string) *refuse.Refusal {
	if some {
		return nil
	}
	return d.refuse("", "The body changes nothing", "Send at least one of "+fields)
}

// needs refuses a body if the text of a required field is empty.
func (d *Decoder) needs(field, text string) *refuse.Refusal {
	if text != "" {
		return nil
	}
	return d.Missing(field)
}

// Missing returns the refusal of an object without a required field.
func (d *Decoder) Missing(field string) *refuse.Refusal {
	return d.refuse(field, "Missing required field: "+d.path(field), "Send "+field+" in the JSON body")
}

// Unknown skips the value of an unknown field and returns its refusal.
func (d *Decoder) Unknown(name []byte) *refuse.Refusal {
	field := jsonout.Shorten(string(name))
	if bad := d.skip(); bad != nil {
		return bad
	}
	return d.refuse(field, "Unknown field: "+d.path(field), "Remove it, or check its spelling: names are case-sensitive")
}

// takes reads a value of the given kind, as sent. ok is false for null. Any other kind is skipped and refused.
func (d *Decoder) takes(kind jsontext.Kind, field, allowed string) (raw []byte, ok bool, bad *refuse.Refusal) {
	switch got := d.dec.PeekKind(); got {
	case kind, jsontext.KindInvalid:
		raw, bad = d.value()
		return raw, bad == nil, bad
	case jsontext.KindNull:
		return nil, false, d.skip()
	default:
		if bad := d.skip(); bad != nil {
			return nil, false, bad
		}
		return nil, false, d.Invalid(field, allowed)
	}
}

// Integer reads an integer from lo to hi. Fractions, exponents and strings are refused.
func (d *Decoder) Integer(field string, lo, hi int64) (n int64, ok bool, bad *refuse.Refusal) {
	raw, ok, bad := d.takes(jsontext.KindNumber, field, "")
	if bad == nil && !ok {
		return 0, false, nil
	}
	if bad == nil {
		var err error
		if n, err = strconv.ParseInt(string(raw), 10, 64); err == nil && lo <= n && n <= hi {
			return n, true, nil
		}
	} else if bad.Syntax {
		return 0, false, bad
	}
	return 0, false, d.Invalid(field, "an integer from "+strconv.FormatInt(lo, 10)+" to "+strconv.FormatInt(hi, 10))
}

// Text reads a string, valid until the next call of the decoder.
func (d *Decoder) Text(field, allowed string) (s []byte, ok bool, bad *refuse.Refusal) {
	raw, ok, bad := d.takes(jsontext.KindString, field, allowed)
	if !ok || bad != nil {
		return nil, false, bad
	}
	return d.unquote(raw), true, nil
}

// parsed reads a string with parse, the zero value if it is null. allowed describes the valid values.
func parsed[T any](d *Decoder, field, allowed string, parse func(s string) (T, bool)) (T, *refuse.Refusal) {
	v, _, bad := parsedRaw(d, field, allowed, parse)
	return v, bad
}

// parsedRaw is parsed, but also returns the string as sent.
func parsedRaw[T any](d *Decoder, field, allowed string, parse func(s string) (T, bool)) (v T, raw []byte, bad *refuse.Refusal) {
	raw, ok, bad := d.takes(kindString, field, allowed)
	if !ok || bad != nil {
		return v, nil, bad
	}
	if v, ok = parse(string(d.unquote(raw))); !ok {
		var none T
		return none, nil, d.Invalid(field, allowed)
	}
	return v, raw, nil
}

// id reads the name of a worker or processor, "" if it is null. A malformed one gets refusal, as the contract
// requires.
func (d *Decoder) id(field string, valid func(s []byte) bool, refusal func(field string) *refuse.Refusal) (string, *refuse.Refusal) {
	s, ok, bad := d.Text(field, "")
	switch {
	case bad != nil && bad.Syntax:
		return "", bad
	case bad != nil, ok && !valid(s):
		return "", refusal(d.path(field))
	}
	return string(s), nil
}

// workerID reads a worker_id, "" if it is null.
func (d *Decoder) workerID() (string, *refuse.Refusal) {
	return d.id("worker_id", wire.ValidWorkerID[[]byte], refuseWorkerID)
}

// holderID reads the worker_id of a filter, "" if it is null. It may also be a processor's id, because processors end
// tasks, too.
func (d *Decoder) holderID() (string, *refuse.Refusal) {
	return d.id("worker_id", wire.ValidWorkerID[[]byte], RefuseHolderID)
}

// processorID reads a processor_id, "" if it is null.
func (d *Decoder) processorID() (string, *refuse.Refusal) {
	return d.id("processor_id", wire.ValidWorkerID[[]byte], func(field string) *refuse.Refusal {
		return &refuse.Refusal{Code: d.code, Field: field, Text: "Invalid processor_id format", Advice: "Send a processor_id of " + wire.WorkerIDAllowed}
	})
}

// RefuseHolderID refuses a parameter or field that names a worker or a processor.
func RefuseHolderID(field string) *refuse.Refusal {
	f := refuseWorkerID(field)
	f.Advice = "Send the worker_id of a worker, or the processor_id of a processor: " + wire.WorkerIDAllowed
	return f
}

func refuseWorkerID(field string) *refuse.Refusal {
	return refuse.New(wire.CodeInvalidWorkerID, "Invalid worker_id format", "Send a worker_id of "+wire.WorkerIDAllowed).At(field)
}

func (d *Decoder) taskType(field string) (string, bool, *refuse.Refusal) {
	s, ok, bad := d.Text(field, wire.TaskTypeAllowed)
	if !ok || bad != nil {
		return "", false, bad
	}
	if !wire.ValidTaskType(s) {
		return "", false, d.Invalid(field, wire.TaskTypeAllowed)
	}
	return string(s), true, nil
}

// key reads a string of 1 to most bytes without control characters.
func (d *Decoder) key(field string, most int) (string, bool, *refuse.Refusal) {
	allowed := ""
	s, ok, bad := d.Text(field, "")
	if bad != nil && bad.Syntax || bad == nil && !ok {
		return "", false, bad
	}
	if bad == nil && wire.ValidKey(s, most) {
		return string(s), true, nil
	}
	allowed = "a string of 1 to " + strconv.Itoa(most) + " bytes without control characters"
	return "", false, d.Invalid(field, allowed)
}

// raw reads any JSON value of up to most bytes, as a copy of the bytes sent.
func (d *Decoder) raw(field string, most int) ([]byte, *refuse.Refusal) {
	if d.IsNull() {
		return nil, d.skip()
	}
	depth := d.dec.StackDepth()
	v, bad := d.value()
	if bad != nil {
		return nil, bad
	}
	if len(v) > most {
		return nil, d.oversized(field, most)
	}
	if depth+brackets(v) > d.limits.Depth && depth+nesting(v) > d.limits.Depth {
		return nil, d.Invalid(field, "nested at most "+strconv.Itoa(d.limits.Depth)+" levels deep, the body being the first")
	}
	return bytes.Clone(v), nil
}

// rawObject is raw for an object, of as many bytes as a value may have.
func (d *Decoder) rawObject(field string) ([]byte, *refuse.Refusal) {
	v, bad := d.raw(field, d.limits.ValueBytes)
	if bad == nil && v != nil && v[0] != '{' {
		bad = d.Invalid(field, "an object")
	}
	return v, bad
}

// base64 reads opaque bytes, nil if the field is null.
func (d *Decoder) base64(field string) ([]byte, *refuse.Refusal) {
	const allowed = "a string in base64 (standard alphabet, padded)"
	s, ok, bad := d.Text(field, allowed)
	if !ok || bad != nil {
		return nil, bad
	}
	if base64.StdEncoding.DecodedLen(len(s)) > d.limits.ValueBytes+2 {
		return nil, d.oversized(field, d.limits.ValueBytes)
	}
	out := make([]byte, base64.StdEncoding.DecodedLen(len(s)))
	n, err := base64.StdEncoding.Strict().Decode(out, s)
	if err != nil || bytes.ContainsAny(s, "\r\n") {
		return nil, d.Invalid(field, allowed)
	}
	if n > d.limits.ValueBytes {
		return nil, d.oversized(field, d.limits.ValueBytes)
	}
	return out[:n:n], nil
}

func (d *Decoder) oversized(field string, most int) *refuse.Refusal {
	path := d.path(field)
	return refuse.TooLarge(path, path+" is larger than "+strconv.Itoa(most)+" bytes")
}

// open reads the start of an object or array. ok is false for null.
func (d *Decoder) open(kind jsontext.Kind, field, allowed string) (ok bool, bad *refuse.Refusal) {
	switch d.dec.PeekKind() {
	case kind, jsontext.KindInvalid:
		if _, err := d.dec.ReadToken(); err != nil {
			return false, d.syntax(err)
		}
		return true, nil
	case jsontext.KindNull:
		return false, d.skip()
	}
	if bad := d.skip(); bad != nil {
		return false, bad
	}
	return false, d.Invalid(field, allowed)
}

// beginItem reads the start of an object in an array, where null is refused.
func (d *Decoder) beginItem() *refuse.Refusal {
	ok, bad := d.open(jsontext.KindBeginObject, "", "an object")
	if bad == nil && !ok {
		bad = d.Invalid("", "an object")
	}
	return bad
}

// elements reads an array of up to most elements: element reads each of them. n is their number; ok is false for
// null.
func (d *Decoder) elements(field, allowed string, most int, element func(i int) *refuse.Refusal) (n int, ok bool, bad *refuse.Refusal) {
	ok, bad = d.open(jsontext.KindBeginArray, field, allowed)
	if bad != nil || !ok {
		return 0, false, bad
	}
	for ; d.dec.PeekKind() != jsontext.KindEndArray; n++ {
		if n == most {
			return n, false, d.Invalid(field, allowed)
		}
		if bad := element(n); bad != nil {
			return n, false, bad
		}
	}
	if _, err := d.dec.ReadToken(); err != nil {
		return n, false, d.syntax(err)
	}
	return n, true, nil
}

// arraySince returns the array just read as sent, pointing into the body. start is the offset after its name,
// with only a colon and space in between.
func (d *Decoder) arraySince(start int64) []byte {
	raw := d.body[start:d.dec.InputOffset()]
	return raw[bytes.IndexByte(raw, '['):]
}

// array reads an array of 1 to most things: element reads each of them. ok is false for null.
func (d *Decoder) array(field, things string, most int, element func() *refuse.Refusal) (ok bool, bad *refuse.Refusal) {
	allowed := "an array of 1 to " + strconv.Itoa(most) + " " + things
	n, ok, bad := d.elements(field, allowed, most, func(i int) *refuse.Refusal {
		d.enter(field, i)
		defer d.leave()
		return element()
	})
	if ok && n == 0 {
		return false, d.Invalid(field, allowed)
	}
	return ok, bad
}

// syntax converts an error of the decoder into a refusal.
func (d *Decoder) syntax(err error) *refuse.Refusal {
	r := &refuse.Refusal{Code: wire.CodeInvalidRequest, Advice: refuse.AdviceSyntax, Syntax: true}
	var syn *jsontext.SyntacticError
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		errors.As(err, &syn)
		return refuseDuplicate(syn.JSONPointer)
	case errors.As(err, &syn) && strings.Count(string(syn.JSONPointer), "/") > d.limits.Depth:
		r.Field = pointerPath(syn.JSONPointer)
		r.Text = "The body nests deeper than " + strconv.Itoa(d.limits.Depth) + " levels"
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		r.Text = "The body is not valid JSON: it ends too early"
	case errors.As(err, &syn):
		r.Field = pointerPath(syn.JSONPointer)
		r.Text = "The body is not valid JSON: " + syn.Err.Error() + " at byte " + strconv.FormatInt(syn.ByteOffset, 10)
	default:
		r.Text = "The body is not valid JSON"
	}
	return r
}

// refuseDuplicate returns the refusal of a body that has a field twice.
func refuseDuplicate(at jsontext.Pointer) *refuse.Refusal {
	field := pointerPath(at)
	return &refuse.Refusal{Code: wire.CodeInvalidRequest, Text: "Duplicate field: " + field, Advice: refuse.AdviceSyntax, Field: field, Syntax: true}
}

// fieldBytes limits, approximately, the length of a path that the client made up.
const fieldBytes = 100

// pointerPath formats a JSON pointer as the contract names fields: tasks[3].params.x.
func pointerPath(p jsontext.Pointer) string {
	var b strings.Builder
	for token := range p.Tokens() {
		if b.Len() > fieldBytes {
			break
		}
		if _, err := strconv.ParseUint(token, 10, 32); err == nil && b.Len() > 0 {
			b.WriteString("[" + token + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(token)
	}
	return jsonout.Shorten(b.String())
}

func kindName(k jsontext.Kind) string {
	switch k {
	case jsontext.KindNull:
		return "null"
	case jsontext.KindTrue, jsontext.KindFalse:
		return "a boolean"
	case jsontext.KindString:
		return "a string"
	case jsontext.KindNumber:
		return "a number"
	case jsontext.KindBeginArray:
		return "an array"
	}
	return "something else"
}

// brackets counts the opening brackets in v, including those in strings. No value nests deeper than that, and
// counting is much faster than nesting.
func brackets(v []byte) int {
	return bytes.Count(v, []byte{'{'}) + bytes.Count(v, []byte{'['})
}

// nesting returns the nesting depth of a valid JSON value, 0 for a scalar.
func nesting(v []byte) int {
	depth, deepest, quoted := 0, 0, false
	for i := 0; i < len(v); i++ {
		switch c := v[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}
