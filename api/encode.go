package api

import (
	"encoding/base64"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/claimq/claimq/fsm"
)

// The functions of this file append JSON to a buffer by hand. A call's answers
// are held against the types of package wire by the tests.

// taskView says what of a task is shown.
type taskView struct {
	now    fsm.Stamp
	params bool // params and payload
	result bool // result and result_payload
	log    bool // attempts_log
	// steps are how the steps of a parent are; nil: they are not shown.
	steps []fsm.StepView
}

// appendTask appends a task as the contract shows it, fields in its order.
func appendTask(b []byte, t *fsm.Task, v taskView) []byte {
	b = appendTaskBody(b, t, t.Token, t.Status == fsm.StatusClaimed, v)
	return append(b, '}')
}

// appendClaimed appends a task in the answer to a claim: with the token that
// this claim got and, of a repeated answer, whether the claim is still live.
func appendClaimed(b []byte, c *fsm.Claim, repeated bool, now fsm.Stamp) []byte {
	live := c.Live && c.Task.Status == fsm.StatusClaimed
	if c.Task.Status == 0 {
		// It was deleted since. What is not known any more is left out.
		b = append(b, `{"id":`...)
		b = strconv.AppendUint(b, c.Task.ID, 10)
		b = append(b, `,"claim_token":`...)
		b = strconv.AppendUint(b, c.Token, 10)
		return append(b, `,"claim_state":"ended"}`...)
	}
	b = appendTaskBody(b, &c.Task, c.Token, live, taskView{now: now, params: true, result: true})
	if repeated {
		b = append(b, `,"claim_state":"`...)
		if c.Live {
			b = append(b, `live"`...)
		} else {
			b = append(b, `ended"`...)
		}
	}
	return append(b, '}')
}

// appendTaskBody appends a task without its closing brace. leased says whether
// the lease that token stands for is running.
func appendTaskBody(b []byte, t *fsm.Task, token uint64, leased bool, v taskView) []byte {
	b = append(b, `{"id":`...)
	b = strconv.AppendUint(b, t.ID, 10)
	b = append(b, `,"task_type":`...)
	b = appendString(b, t.Type)
	if v.params {
		b = appendRaw(b, `,"params":`, t.Params)
		b = appendBase64(b, `,"payload":`, t.Payload)
	}
	b = append(b, `,"priority":`...)
	b = strconv.AppendInt(b, int64(t.Priority), 10)
	b = append(b, `,"max_attempts":`...)
	b = strconv.AppendInt(b, int64(t.MaxAttempts), 10)
	b = append(b, `,"attempts":`...)
	b = strconv.AppendInt(b, int64(t.Attempts), 10)
	if t.Key != "" {
		b = append(b, `,"idempotency_key":`...)
		b = appendString(b, t.Key)
	}
	if t.Options != nil && t.Options.UniqueActive {
		b = append(b, `,"unique":"active"`...)
	}
	b = append(b, `,"status":"`...)
	b = append(b, t.Status.String()...)
	b = append(b, '"')
	if t.RunAt != 0 {
		b = append(b, `,"run_at":`...)
		b = appendTime(b, t.RunAt)
	}
	if t.Options != nil && t.Options.ExpiresAt != 0 {
		b = append(b, `,"expires_at":`...)
		b = appendTime(b, t.Options.ExpiresAt)
	}
	if t.LeaseMS > 0 {
		b = append(b, `,"lease_ms":`...)
		b = strconv.AppendInt(b, t.LeaseMS, 10)
	}
	if t.Options != nil {
		b = appendOptions(b, t.Options)
	}
	b = appendHold(b, t, token, leased, v.now)
	b = append(b, `,"created_at":`...)
	b = appendTime(b, t.CreatedAt)
	b = append(b, `,"updated_at":`...)
	b = appendTime(b, t.UpdatedAt)
	b = append(b, `,"completed_at":`...)
	b = appendTime(b, t.CompletedAt)
	if v.result {
		b = appendRaw(b, `,"result":`, t.Result)
		b = appendBase64(b, `,"result_payload":`, t.ResultPayload)
	}
	if t.Error != "" {
		b = append(b, `,"error":`...)
		b = appendString(b, t.Error)
	}
	b = appendRaw(b, `,"progress":`, t.Progress)
	if t.CancelRequested {
		b = append(b, `,"cancel_requested":true`...)
	} else {
		b = append(b, `,"cancel_requested":false`...)
	}
	if v.log {
		b = appendLog(b, t.Log)
	}
	if t.Options != nil && (t.Options.Parent != nil || t.Options.Step != nil) {
		b = appendFamily(b, t, v.steps)
	}
	return b
}

// appendOptions appends those of the rarer fields that stand together.
func appendOptions(b []byte, o *fsm.Options) []byte {
	if o.Backoff != nil {
		b = append(b, `,"backoff":`...)
		b = appendBackoff(b, o.Backoff)
	}
	if o.RetentionMS != 0 {
		b = append(b, `,"retention_ms":`...)
		b = appendRetention(b, o.RetentionMS)
	}
	if len(o.Labels) > 0 {
		b = append(b, `,"labels":`...)
		b = appendLabels(b, o.Labels)
	}
	if o.Group != "" {
		b = append(b, `,"group":`...)
		b = appendString(b, o.Group)
	}
	if o.Traceparent != "" {
		b = append(append(b, `,"traceparent":"`...), o.Traceparent...)
		b = append(b, '"')
	}
	return b
}

func appendBackoff(b []byte, o *fsm.Backoff) []byte {
	b = append(b, `{"initial_ms":`...)
	b = strconv.AppendInt(b, o.InitialMS, 10)
	b = append(b, `,"max_ms":`...)
	b = strconv.AppendInt(b, o.MaxMS, 10)
	b = append(b, `,"factor":`...)
	b = appendDecimal(b, o.Factor)
	b = append(b, `,"jitter":`...)
	b = appendDecimal(b, o.Jitter)
	return append(b, '}')
}

// appendRetention appends a retention_ms as the contract has it.
func appendRetention(b []byte, ms int64) []byte {
	switch ms {
	case fsm.KeepForever:
		ms = -1
	case fsm.KeepNone:
		ms = 0
	}
	return strconv.AppendInt(b, ms, 10)
}

func appendLabels(b []byte, labels []fsm.Label) []byte {
	b = append(b, '{')
	for i, l := range labels {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, l.Name), ':')
		b = appendString(b, l.Value)
	}
	return append(b, '}')
}

// appendGone appends what is left of a task that was removed since it ended.
func appendGone(b []byte, t *fsm.Task) []byte {
	b = append(b, `{"id":`...)
	b = strconv.AppendUint(b, t.ID, 10)
	if t.Key != "" {
		b = append(b, `,"idempotency_key":`...)
		b = appendString(b, t.Key)
	}
	b = append(b, `,"status":"`...)
	b = append(b, t.Status.String()...)
	b = append(b, `","worker_id":`...)
	b = appendWorker(b, t.WorkerID)
	b = append(b, `,"claim_token":`...)
	return append(appendToken(b, t.Token), '}')
}

// appendWorker appends a worker_id, null if there is none.
func appendWorker(b []byte, id string) []byte {
	if id == "" {
		return append(b, "null"...)
	}
	return appendString(b, id)
}

// appendToken appends a claim_token, null if there is none.
func appendToken(b []byte, token uint64) []byte {
	if token == 0 {
		return append(b, "null"...)
	}
	return strconv.AppendUint(b, token, 10)
}

// appendHold appends who holds a task, and until when.
func appendHold(b []byte, t *fsm.Task, token uint64, leased bool, now fsm.Stamp) []byte {
	b = append(b, `,"worker_id":`...)
	b = appendWorker(b, t.WorkerID)
	b = append(b, `,"claim_token":`...)
	b = appendToken(b, token)
	b = append(b, `,"claimed_at":`...)
	b = appendTime(b, t.ClaimedAt)
	if !leased {
		return append(b, `,"lease_expires_at":null,"lease_remaining_ms":null`...)
	}
	left := leaseLeft(t, now)
	b = append(b, `,"lease_expires_at":`...)
	b = appendTime(b, now.T+t.LeaseEndU-now.U)
	b = append(b, `,"lease_remaining_ms":`...)
	return strconv.AppendInt(b, left, 10)
}

// leaseLeft is what the lease of a claimed task has left, in milliseconds.
func leaseLeft(t *fsm.Task, now fsm.Stamp) int64 { return max(0, t.LeaseEndU-now.U) }

func appendLog(b []byte, log []fsm.Attempt) []byte {
	b = append(b, `,"attempts_log":[`...)
	for i := range log {
		a := &log[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"worker_id":`...)
		b = appendString(b, a.WorkerID)
		b = append(b, `,"claim_token":`...)
		b = strconv.AppendUint(b, a.Token, 10)
		b = append(b, `,"claimed_at":`...)
		b = appendTime(b, a.ClaimedAt)
		b = append(b, `,"ended_at":`...)
		b = appendTime(b, a.EndedAt)
		b = append(b, `,"outcome":`...)
		if a.Outcome == fsm.OutcomeNone {
			b = append(b, "null"...)
		} else {
			b = appendString(b, a.Outcome.String())
		}
		if a.Error != "" {
			b = append(b, `,"error":`...)
			b = appendString(b, a.Error)
		}
		b = append(b, '}')
	}
	return append(b, ']')
}

// appendRaw appends a field that is JSON already, nothing if it is nil.
func appendRaw(b []byte, name string, raw []byte) []byte {
	if raw == nil {
		return b
	}
	return append(append(b, name...), raw...)
}

// appendBase64 appends a field of bytes, nothing if it is nil.
func appendBase64(b []byte, name string, raw []byte) []byte {
	if raw == nil {
		return b
	}
	b = append(append(b, name...), '"')
	b = base64.StdEncoding.AppendEncode(b, raw)
	return append(b, '"')
}

const hexDigits = "0123456789abcdef"

// appendString appends a JSON string. Bytes that are not UTF-8 become U+FFFD.
func appendString[T ~string | ~[]byte](b []byte, s T) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(string(s[i:min(len(s), i+utf8.UTFMax)]))
			if r != utf8.RuneError || size > 1 {
				i += size
				continue
			}
			b = append(append(b, s[start:i]...), `\ufffd`...)
			i++
			start = i
			continue
		}
		b = append(b, s[start:i]...)
		b = appendEscaped(b, c)
		i++
		start = i
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}

func appendEscaped(b []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	}
	return append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// appendTime appends milliseconds since the Unix epoch as RFC 3339 in UTC with
// milliseconds, quoted; null for 0.
func appendTime(b []byte, ms int64) []byte {
	if ms == 0 {
		return append(b, "null"...)
	}
	const dayMS = 86_400_000
	const farMS = 253_402_300_800_000 // the year 10000
	if ms < 0 || ms >= farMS {
		return time.UnixMilli(ms).UTC().AppendFormat(b, `"2006-01-02T15:04:05.000Z"`)
	}
	year, month, day := civil(ms / dayMS)
	left := int(ms % dayMS)
	b = append(b, '"')
	b = append2(append2(b, year/100), year%100)
	b = append2(append(b, '-'), month)
	b = append2(append(b, '-'), day)
	b = append2(append(b, 'T'), left/3_600_000)
	b = append2(append(b, ':'), left/60_000%60)
	b = append2(append(b, ':'), left/1_000%60)
	b = append2(append(b, '.', byte('0'+left%1_000/100)), left%100)
	return append(b, 'Z', '"')
}

// append2 appends a number of [0, 100) in two digits.
func append2(b []byte, n int) []byte { return append(b, byte('0'+n/10), byte('0'+n%10)) }

// civil returns the date that is days after 1970-01-01, days not negative. It
// counts years from March, so that the leap day is a year's last.
func civil(days int64) (year, month, day int) {
	const (
		era       = 146_097 // days of 400 years
		toMarch0  = 719_468 // from 0000-03-01 to 1970-01-01
		fiveMonth = 153     // days of five months from March or August
	)
	z := days + toMarch0
	inEra := z % era
	yearOfEra := (inEra - inEra/1_460 + inEra/36_524 - inEra/(era-1)) / 365
	dayOfYear := inEra - (365*yearOfEra + yearOfEra/4 - yearOfEra/100)
	fromMarch := (5*dayOfYear + 2) / fiveMonth
	day = int(dayOfYear-(fiveMonth*fromMarch+2)/5) + 1
	month = int(fromMarch) + 3
	if month > 12 {
		month -= 12
	}
	year = int(z/era*400 + yearOfEra)
	if month <= 2 {
		year++
	}
	return year, month, day
}
