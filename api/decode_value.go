package api

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/claimq/claimq/fsm"
)

// object reads the object that a field is: it calls field with each name in it,
// and field reads the value. ok is false for null. A refusal is made after the
// object was read to its end.
func (d *decoder) object(name string, field func(name []byte) *refusal) (ok bool, bad *refusal) {
	switch d.dec.PeekKind() {
	case jsontext.KindBeginObject, jsontext.KindInvalid:
		if _, err := d.dec.ReadToken(); err != nil {
			return false, d.syntax(err)
		}
	case jsontext.KindNull:
		return false, d.skip()
	default:
		if bad := d.skip(); bad != nil {
			return false, bad
		}
		return false, d.invalid(name, "an object")
	}
	d.enter(name, -1)
	defer d.leave()
	depth := d.dec.StackDepth()
	for {
		name, more, bad := d.next()
		if bad != nil || !more {
			return bad == nil, bad
		}
		if bad := field(name); bad != nil {
			if syntax := d.skipRest(bad, depth); syntax != nil {
				return false, syntax
			}
			return false, bad
		}
	}
}

// boolean reads true or false.
func (d *decoder) boolean(field string) (value bool, bad *refusal) {
	switch kind := d.dec.PeekKind(); kind {
	case jsontext.KindTrue, jsontext.KindFalse, jsontext.KindNull:
		return kind == jsontext.KindTrue, d.skip()
	}
	if bad := d.skip(); bad != nil {
		return false, bad
	}
	return false, d.invalid(field, "true or false")
}

// instant reads a time as milliseconds since the Unix epoch. What is finer is
// rounded up, and nothing is before the first millisecond: 0 stands for none.
func (d *decoder) instant(field string) (ms int64, ok bool, bad *refusal) {
	const allowed = "a time in RFC 3339 of the years 1970 to 9999, as 2006-01-02T15:04:05.000Z,"
	const farMS = 253_402_300_800_000 // the year 10000
	s, ok, bad := d.text(field, allowed)
	if !ok || bad != nil {
		return 0, false, bad
	}
	t, err := time.Parse(time.RFC3339Nano, string(s))
	if err != nil || s[len("2006-01-02T15")] != ':' || bytes.IndexByte(s, ',') >= 0 { // Parse lets in 9:00 and a comma
		return 0, false, d.invalid(field, allowed)
	}
	ms = t.UnixMilli()
	if t.Nanosecond()%int(time.Millisecond) != 0 {
		ms++
	}
	if ms < 0 || ms >= farMS {
		return 0, false, d.invalid(field, allowed)
	}
	return max(ms, 1), true, nil
}

// micro is a millionth, the unit of decimal.
const micro = 1_000_000

// decimal reads a number of [lo, hi], given in millionths as what it returns.
// What is finer is rounded to the nearest.
func (d *decoder) decimal(field string, lo, hi int64) (n int64, ok bool, bad *refusal) {
	raw, ok, bad := d.takes(jsontext.KindNumber, field, "")
	switch {
	case bad != nil && bad.syntax:
		return 0, false, bad
	case bad == nil && !ok:
		return 0, false, nil
	case bad == nil:
		f, err := strconv.ParseFloat(string(raw), 64)
		if err == nil && f >= float64(lo)/micro && f <= float64(hi)/micro {
			return int64(math.Round(f * micro)), true, nil
		}
	}
	return 0, false, d.invalid(field, "a number from "+string(appendDecimal(nil, lo))+" to "+string(appendDecimal(nil, hi)))
}

// appendDecimal appends a number that is given in millionths.
func appendDecimal(b []byte, n int64) []byte {
	b = strconv.AppendInt(b, n/micro, 10)
	if n%micro == 0 {
		return b
	}
	digits := strconv.Itoa(int(micro + n%micro))[1:]
	return append(append(b, '.'), strings.TrimRight(digits, "0")...)
}

// The defaults and bounds of a backoff.
const (
	backoffMaxMS  = 86_400_000 // of max_ms, or initial_ms if that is more
	backoffFactor = 2 * micro
	factorMax     = 1_000 * micro
)

// backoff reads a backoff, nil if it is null.
func (d *decoder) backoff() (*fsm.Backoff, *refusal) {
	b := fsm.Backoff{Factor: backoffFactor}
	ok, bad := d.object("backoff", func(name []byte) (bad *refusal) {
		var n int64
		var ok bool
		switch string(name) {
		case "initial_ms":
			b.InitialMS, _, bad = d.integer("initial_ms", 1, delayMSMax)
		case "max_ms":
			b.MaxMS, _, bad = d.integer("max_ms", 1, delayMSMax)
		case "factor":
			if n, ok, bad = d.decimal("factor", micro, factorMax); ok {
				b.Factor = n
			}
		case "jitter":
			b.Jitter, _, bad = d.decimal("jitter", 0, micro)
		default:
			bad = d.unknown(name)
		}
		return bad
	})
	if !ok || bad != nil {
		return nil, bad
	}
	d.enter("backoff", -1)
	defer d.leave()
	switch {
	case b.InitialMS == 0:
		return nil, d.missing("initial_ms")
	case b.MaxMS == 0:
		b.MaxMS = max(backoffMaxMS, b.InitialMS)
	case b.MaxMS < b.InitialMS:
		return nil, d.invalid("max_ms", "an integer from initial_ms ("+strconv.FormatInt(b.InitialMS, 10)+") to "+strconv.Itoa(delayMSMax))
	}
	return &b, nil
}

// retention reads a retention_ms as the state machine has it.
func (d *decoder) retention() (ms int64, ok bool, bad *refusal) {
	ms, ok, bad = d.integer("retention_ms", -1, retentionMSMax)
	switch {
	case !ok || bad != nil:
		return 0, ok, bad
	case ms == -1:
		return fsm.KeepForever, true, nil
	case ms == 0:
		return fsm.KeepNone, true, nil
	}
	return ms, true, nil
}

// labels reads labels, sorted by name.
func (d *decoder) labels() (labels []fsm.Label, bad *refusal) {
	const nameAllowed = "an object of up to 16 labels with names of 1 to 64 bytes without : and control characters"
	const valueAllowed = "a string of up to 64 bytes without control characters"
	_, bad = d.object("labels", func(name []byte) *refusal {
		label := fsm.Label{Name: string(name)}
		if len(labels) == labelsMax || !validKey(name, labelBytes) || strings.Contains(label.Name, ":") {
			if bad := d.skip(); bad != nil {
				return bad
			}
			return d.invalid("", nameAllowed)
		}
		value, ok, bad := d.text(label.Name, valueAllowed)
		if bad != nil {
			return bad
		}
		if !ok || len(value) > 0 && !validKey(value, labelBytes) {
			return d.invalid(label.Name, valueAllowed)
		}
		label.Value = string(value)
		labels = append(labels, label)
		return nil
	})
	slices.SortFunc(labels, func(a, b fsm.Label) int { return strings.Compare(a.Name, b.Name) })
	return labels, bad
}
