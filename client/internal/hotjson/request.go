package hotjson

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/claimq/claimq/api/wire"
)

// objectBytes is the initial capacity for a settling call or a claim with short values.
const objectBytes = 256

// Settle is json.Marshal of a settling call or an extend, except that the result stays unchanged if there are neither
// follow-ups nor progress.
func Settle(s *wire.Settle) ([]byte, error) {
	if len(s.Submit) > 0 || s.Progress != nil {
		whole := *s // a value given to Marshal is allocated
		return json.Marshal(&whole)
	}
	o := Open(objectBytes + len(s.Result) + base64.StdEncoding.EncodedLen(len(s.ResultPayload)) + len(s.Error))
	o.name("worker_id")
	o.string(s.WorkerID)
	if s.ClaimToken != 0 {
		o.name("claim_token")
		o.b = strconv.AppendUint(o.b, s.ClaimToken, 10)
	}
	o.Raw("result", s.Result)
	o.Bytes("result_payload", s.ResultPayload)
	if s.Claim != nil {
		o.name("claim")
		o.claim(s.Claim)
	}
	o.text("error", s.Error)
	o.Pointer("retry_in_ms", s.RetryInMS)
	o.True("permanent", s.Permanent)
	o.Number("lease_ms", s.LeaseMS)
	o.True("late", s.Late)
	o.True("exact", s.Exact)
	o.Number("delay_ms", s.DelayMS)
	return o.Close()
}

// ClaimAt returns where the fields of the claim begin in the body of a complete that has one. Only a complete has a
// claim, nothing after it in the body is an object, and in a string the quotes would be escaped.
func ClaimAt(body []byte) int { return bytes.LastIndex(body, claimBegins) + len(claimBegins) }

// HasClaim reports whether the body of a settling call has a claim. It may also return true for a body without one.
func HasClaim(body []byte) bool { return bytes.Contains(body, claimBegins) }

var claimBegins = []byte(`"claim":{`)

// Claim is json.Marshal of a claim.
func Claim(c *wire.Claim) ([]byte, error) {
	o := Object{b: make([]byte, 0, objectBytes)}
	o.claim(c)
	return o.b, o.err
}

func (o *Object) claim(c *wire.Claim) {
	outer := o.some
	o.b, o.some = append(o.b, '{'), false
	o.text("worker_id", c.WorkerID)
	o.texts("task_types", c.TaskTypes)
	o.Number("max_attempts_remaining", int64(c.MaxAttemptsRemaining))
	o.text("sort_by", c.SortBy)
	o.text("sort_order", c.SortOrder)
	o.Number("limit", int64(c.Limit))
	o.Number("lease_ms", c.LeaseMS)
	o.Number("wait_ms", c.WaitMS)
	o.text("claim_request_id", c.ClaimRequestID)
	o.Number("claim_request_place", int64(c.ClaimRequestPlace))
	o.texts("include", c.Include)
	o.b, o.some = append(o.b, '}'), outer
}

// texts appends an array of texts, unless it is empty.
func (o *Object) texts(name string, all []string) {
	if len(all) == 0 {
		return
	}
	o.name(name)
	for i, t := range all {
		if i == 0 {
			o.b = append(o.b, '[')
		} else {
			o.b = append(o.b, ',')
		}
		o.string(t)
	}
	o.b = append(o.b, ']')
}

// Object is a JSON object that is being written, as by json.Marshal. Text, Bytes and Number leave out empty fields.
type Object struct {
	b    []byte
	some bool  // it has at least one field
	err  error // the first error
}

// Open begins an object with an initial capacity in bytes.
func Open(bytes int) Object {
	return Object{b: append(make([]byte, 0, bytes), '{')}
}

// Close ends the object and returns it, or the first error.
func (o *Object) Close() ([]byte, error) { return append(o.b, '}'), o.err }

func (o *Object) name(name string) {
	if o.some {
		o.b = append(o.b, ',')
	}
	o.some = true
	o.b = append(o.b, '"')
	o.b = append(o.b, name...)
	o.b = append(o.b, '"', ':')
}

func (o *Object) fail(err error) {
	if o.err == nil {
		o.err = err
	}
}

// Raw writes JSON unchanged, because Marshal would remove spaces and change escapes; nil is left out.
func (o *Object) Raw(name string, value json.RawMessage) {
	if value != nil {
		o.name(name)
		o.b = append(o.b, value...)
	}
}

// Value writes any value, with reflection, if it is given.
func (o *Object) Value(name string, given bool, value any) {
	if !given {
		return
	}
	text, err := json.Marshal(value)
	if err != nil {
		o.fail(err)
	}
	o.Raw(name, text)
}

// Text writes a text, unless it is not UTF-8: Marshal would replace what is not, and two keys could become one.
func (o *Object) Text(name, value string) {
	if !utf8.ValidString(value) {
		o.fail(fmt.Errorf("%s is not UTF-8", name))
	}
	o.text(name, value)
}

func (o *Object) text(name, value string) {
	if value != "" {
		o.name(name)
		o.string(value)
	}
}

// Bytes writes bytes in base64.
func (o *Object) Bytes(name string, value []byte) {
	if len(value) > 0 {
		o.name(name)
		o.b = append(o.b, '"')
		o.b = base64.StdEncoding.AppendEncode(o.b, value)
		o.b = append(o.b, '"')
	}
}

// Number writes a number other than 0.
func (o *Object) Number(name string, value int64) {
	if value != 0 {
		o.name(name)
		o.b = strconv.AppendInt(o.b, value, 10)
	}
}

// Pointer writes the number that value points to, 0 too; nil is left out.
func (o *Object) Pointer(name string, value *int64) {
	if value != nil {
		o.name(name)
		o.b = strconv.AppendInt(o.b, *value, 10)
	}
}

// True writes a field that is true; false is left out.
func (o *Object) True(name string, v bool) {
	if v {
		o.name(name)
		o.b = append(o.b, "true"...)
	}
}

// string appends a string encoded as by encoding/json.
func (o *Object) string(s string) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, err := json.Marshal(s)
			if err != nil {
				o.fail(err)
			}
			o.b = append(o.b, quoted...)
			return
		}
	}
	o.b = append(o.b, '"')
	o.b = append(o.b, s...)
	o.b = append(o.b, '"')
}
