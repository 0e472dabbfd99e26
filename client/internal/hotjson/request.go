package hotjson

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strconv"

	"github.com/claimq/claimq/api/wire"
)

// Initial capacity for a request with short values: for a task, and for any other object.
const (
	taskBytes   = 128
	objectBytes = 256
)

// Task is json.Marshal of a task to submit, except that the params come first and unchanged, because Marshal would
// remove spaces from a json.RawMessage and change its escapes.
func Task(n *wire.NewTask) ([]byte, error) {
	if n.RunAt != nil || n.ExpiresAt != nil || n.ExpiresAgain || n.Backoff != nil || n.RetentionMS != nil || len(n.Labels) > 0 || len(n.Steps) > 0 || n.Attributes != nil ||
		n.DelayMS != nil || n.Finalize != "" || n.OnStepFailure != "" {
		rest := *n // a value given to Marshal is allocated
		rest.Params = nil
		b, err := json.Marshal(&rest)
		if err != nil || n.Params == nil {
			return b, err
		}
		return WithField("params", n.Params, b), nil
	}
	o := open(taskBytes + len(n.Params) + base64.StdEncoding.EncodedLen(len(n.Payload)))
	o.raw("params", n.Params)
	o.text("task_type", n.TaskType)
	o.bytes("payload", n.Payload)
	o.number("priority", int64(n.Priority))
	if n.MaxAttempts != nil {
		o.name("max_attempts")
		o.b = strconv.AppendInt(o.b, int64(*n.MaxAttempts), 10)
	}
	o.text("idempotency_key", n.IdempotencyKey)
	o.text("unique", n.Unique)
	o.number("unique_ms", n.UniqueMS)
	o.number("lease_ms", n.LeaseMS)
	o.text("group", n.Group)
	o.text("share_key", n.ShareKey)
	o.number("wait_for_signal_ms", n.SignalMS)
	o.text("traceparent", n.Traceparent)
	return o.close()
}

// Settle is json.Marshal of a settling call or an extend, except that the result stays unchanged if there are neither
// follow-ups nor progress.
func Settle(s *wire.Settle) ([]byte, error) {
	if len(s.Submit) > 0 || s.Progress != nil {
		whole := *s // a value given to Marshal is allocated
		return json.Marshal(&whole)
	}
	o := open(objectBytes + len(s.Result) + base64.StdEncoding.EncodedLen(len(s.ResultPayload)) + len(s.Error))
	o.name("worker_id")
	o.string(s.WorkerID)
	if s.ClaimToken != 0 {
		o.name("claim_token")
		o.b = strconv.AppendUint(o.b, s.ClaimToken, 10)
	}
	o.raw("result", s.Result)
	o.bytes("result_payload", s.ResultPayload)
	if s.Claim != nil {
		o.name("claim")
		o.claim(s.Claim)
	}
	o.text("error", s.Error)
	if s.RetryInMS != nil {
		o.name("retry_in_ms")
		o.b = strconv.AppendInt(o.b, *s.RetryInMS, 10)
	}
	o.boolean("permanent", s.Permanent)
	o.number("lease_ms", s.LeaseMS)
	o.boolean("late", s.Late)
	o.boolean("exact", s.Exact)
	o.number("delay_ms", s.DelayMS)
	return o.close()
}

// ClaimAt returns where the fields of the claim begin in the body of a complete that has one. Only a complete has a
// claim, nothing after it in the body is an object, and in a string the quotes would be escaped.
func ClaimAt(body []byte) int { return bytes.LastIndex(body, claimBegins) + len(claimBegins) }

// HasClaim reports whether the body of a settling call has a claim. It may also return true for a body without one.
func HasClaim(body []byte) bool { return bytes.Contains(body, claimBegins) }

var claimBegins = []byte(`"claim":{`)

// boolean appends a field that is true; false is left out.
func (o *object) boolean(name string, v bool) {
	if v {
		o.name(name)
		o.b = append(o.b, "true"...)
	}
}

// Claim is json.Marshal of a claim.
func Claim(c *wire.Claim) ([]byte, error) {
	o := object{b: make([]byte, 0, objectBytes)}
	o.claim(c)
	return o.b, o.err
}

func (o *object) claim(c *wire.Claim) {
	outer := o.some
	o.b, o.some = append(o.b, '{'), false
	o.text("worker_id", c.WorkerID)
	o.texts("task_types", c.TaskTypes)
	o.number("max_attempts_remaining", int64(c.MaxAttemptsRemaining))
	o.text("sort_by", c.SortBy)
	o.text("sort_order", c.SortOrder)
	o.number("limit", int64(c.Limit))
	o.number("lease_ms", c.LeaseMS)
	o.number("wait_ms", c.WaitMS)
	o.text("claim_request_id", c.ClaimRequestID)
	o.number("claim_request_place", int64(c.ClaimRequestPlace))
	o.texts("include", c.Include)
	o.b, o.some = append(o.b, '}'), outer
}

// texts appends an array of texts, unless it is empty.
func (o *object) texts(name string, all []string) {
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

// object is a JSON object that is being written. text, bytes and number leave out empty fields.
type object struct {
	b    []byte
	some bool  // it has at least one field
	err  error // the first error
}

// open begins an object with an initial capacity in bytes.
func open(bytes int) object {
	return object{b: append(make([]byte, 0, bytes), '{')}
}

func (o *object) close() ([]byte, error) { return append(o.b, '}'), o.err }

func (o *object) name(name string) {
	if o.some {
		o.b = append(o.b, ',')
	}
	o.some = true
	o.b = append(o.b, '"')
	o.b = append(o.b, name...)
	o.b = append(o.b, '"', ':')
}

// raw writes JSON unchanged; nil is left out.
func (o *object) raw(name string, value json.RawMessage) {
	if value != nil {
		o.name(name)
		o.b = append(o.b, value...)
	}
}

func (o *object) text(name, value string) {
	if value != "" {
		o.name(name)
		o.string(value)
	}
}

func (o *object) bytes(name string, value []byte) {
	if len(value) > 0 {
		o.name(name)
		o.b = append(o.b, '"')
		o.b = base64.StdEncoding.AppendEncode(o.b, value)
		o.b = append(o.b, '"')
	}
}

func (o *object) number(name string, value int64) {
	if value != 0 {
		o.name(name)
		o.b = strconv.AppendInt(o.b, value, 10)
	}
}

// string appends a string encoded as by encoding/json.
func (o *object) string(s string) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, err := json.Marshal(s)
			if err != nil && o.err == nil {
				o.err = err
			}
			o.b = append(o.b, quoted...)
			return
		}
	}
	o.b = append(o.b, '"')
	o.b = append(o.b, s...)
	o.b = append(o.b, '"')
}
