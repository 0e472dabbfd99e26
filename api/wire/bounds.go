package wire

import (
	"bytes"
	"strconv"
	"strings"
)

// Bounds of fields, as named in docs/limits.md.
const (
	IDMax      = 1<<53 - 1 // ids and tokens; JSON numbers are exact up to here
	KeyMax     = 256       // bytes of an idempotency key
	RequestMax = 128       // bytes of a claim_request_id, of X-Request-ID
	// RequestPlaceMax bounds a claim_request_place, which is the index of an op of a batch.
	RequestPlaceMax = 999
	NameMax         = 128 // bytes of a worker_id, of a task_type
	LeaseMSMin      = 100
	LeaseMSMax      = 86_400_000
	WaitMSMax       = 60_000
	// UniqueMSMax bounds unique_ms: a day.
	UniqueMSMax = 86_400_000
	// DelayMSMax bounds delay_ms, retry_in_ms and the fields of a backoff: 365 days.
	DelayMSMax = 31_536_000_000
	// RetentionMSMax bounds retention_ms: 100 years of 365 days.
	RetentionMSMax = 3_153_600_000_000
	ProgressBytes  = 4 << 10 // of a progress
	SignalBytes    = 64 << 10
	LabelsMax      = 16     // per task; also values of params to search for
	ContainsMax    = 256    // bytes of a text, or of a pointer with its value, to search for
	LabelBytes     = 64     // of a label's name, and of its value
	GroupMax       = 128    // bytes of a group
	ShareKeyMax    = 128    // bytes of a share key
	WeightMax      = 10_000 // of a share
	WeightDefault  = 100    // of a share without one
	ChangesMax     = 10_000 // tasks that one request may change
	PageDefault    = 100    // tasks of a page without limit
)

// Descriptions of valid values, for refusals.
const (
	TaskTypeAllowed = "a string of 1 to 128 of A-Z a-z 0-9 _ . : -, but not . or .."
	StepNameAllowed = TaskTypeAllowed
	WorkerIDAllowed = "1 to 128 of A-Z a-z 0-9 _ . : @ -, but not . or .."
	StatusAllowed   = "pending, scheduled, blocked, claimed, running, completed, failed or cancelled"
	CreatedAllowed  = "a time in RFC 3339, as 2006-01-02T15:04:05.000Z"
)

// ParseInteger parses an integer from lo to hi, which are not negative. Only digits are accepted, without leading
// zeros.
func ParseInteger(text string, lo, hi int64) (n int64, ok bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && (text[0] > '0' || text == "0") && lo <= n && n <= hi
}

// ValidWorkerID reports whether b is valid as the id of a worker or of a processor: 1 to 128 of A-Z a-z 0-9 _ . : @ -,
// but not . or .. . Names of hosts and of Celery's workers are.
func ValidWorkerID[T ~string | ~[]byte](b T) bool { return isName(b, "_.:@-") }

// ValidTaskType reports whether b is 1 to 128 of A-Z a-z 0-9 _ . : -, but not . or .. .
func ValidTaskType[T ~string | ~[]byte](b T) bool { return isName(b, "_.:-") }

// isName reports whether b is 1 to NameMax letters, digits and characters of also, but not . or .. .
func isName[T ~string | ~[]byte](b T, also string) bool {
	if len(b) == 0 || len(b) > NameMax || IsDots(b) {
		return false
	}
	for i := range len(b) {
		if c := b[i]; !alphanumeric(c) && strings.IndexByte(also, c) < 0 {
			return false
		}
	}
	return true
}

// IsDots reports whether b is . or .., which clients remove from a path, so that a thing of such a name could not be
// requested.
func IsDots[T ~string | ~[]byte](b T) bool { return string(b) == "." || string(b) == ".." }

// ValidStepName reports whether b is the name of a step.
func ValidStepName[T ~string | ~[]byte](b T) bool { return ValidTaskType(b) }

// ValidKey reports whether b is 1 to most bytes without control characters
// (U+0000 to U+001F and U+007F).
func ValidKey[T ~string | ~[]byte](b T, most int) bool {
	if len(b) == 0 || len(b) > most {
		return false
	}
	for i := range len(b) {
		if b[i] < ' ' || b[i] == 0x7f {
			return false
		}
	}
	return true
}

func alphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// traceparentBytes is the length of a traceparent of version 00:
//
//	00-<32 hex: trace id>-<16 hex: parent id>-<2 hex: flags>
const traceparentBytes = 2 + 1 + 32 + 1 + 16 + 1 + 2

// ValidTraceparent reports whether v is a W3C trace context of version 00
// (https://www.w3.org/TR/trace-context/): hex digits in lower case, neither id all zero.
func ValidTraceparent(v []byte) bool {
	const traceEnd, parentEnd = 35, 52
	if len(v) != traceparentBytes || v[0] != '0' || v[1] != '0' || v[2] != '-' || v[traceEnd] != '-' || v[parentEnd] != '-' {
		return false
	}
	trace, parent, flags := v[3:traceEnd], v[traceEnd+1:parentEnd], v[parentEnd+1:]
	return lowerHex(trace) && lowerHex(parent) && lowerHex(flags) && !zeros(trace) && !zeros(parent)
}

func lowerHex(b []byte) bool {
	for _, c := range b {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func zeros(b []byte) bool { return len(bytes.Trim(b, "0")) == 0 }
