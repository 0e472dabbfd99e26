package codec

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
)

// Defaults and bounds of a backoff.
const (
	backoffMaxMS  = 3_600_000         // of max_ms, or initial_ms if that is larger
	backoffFactor = 2 * jsonout.Micro // the default
	backoffJitter = jsonout.Micro / 5 // the default
	factorMax     = 1_000 * jsonout.Micro
)

// object reads an object: it calls field with each name in it, and field reads the value. ok is false for null. A
// refusal is returned after the object was read to its end.
func (d *Decoder) object(name string, field func(name []byte) *refuse.Refusal) (ok bool, bad *refuse.Refusal) {
	if ok, bad = d.open(jsontext.KindBeginObject, name, "an object"); !ok || bad != nil {
		return false, bad
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

// Boolean reads true or false.
func (d *Decoder) Boolean(field string) (value bool, bad *refuse.Refusal) {
	switch kind := d.dec.PeekKind(); kind {
	case jsontext.KindTrue, jsontext.KindFalse, jsontext.KindNull:
		return kind == jsontext.KindTrue, d.skip()
	}
	if bad := d.skip(); bad != nil {
		return false, bad
	}
	return false, d.Invalid(field, "true or false")
}

// instant reads a time as milliseconds since the Unix epoch, rounded up to a millisecond. The result is at least 1,
// because 0 stands for none.
func (d *Decoder) instant(field string) (ms int64, ok bool, bad *refuse.Refusal) {
	const allowed = "a time in RFC 3339 of the years 1970 to 9999, as 2006-01-02T15:04:05.000Z"
	const farMS = 253_402_300_800_000 // the year 10000
	s, ok, bad := d.Text(field, allowed)
	if !ok || bad != nil {
		return 0, false, bad
	}
	t, valid := parseTime(string(s))
	if !valid {
		return 0, false, d.Invalid(field, allowed)
	}
	ms = t.UnixMilli()
	if t.Nanosecond()%int(time.Millisecond) != 0 {
		ms++
	}
	if ms < 0 || ms >= farMS {
		return 0, false, d.Invalid(field, allowed)
	}
	return max(ms, 1), true, nil
}

// parseTime parses a time in RFC 3339. Package time would also accept 9:00, a comma, and offsets of 24:00 and 00:60.
func parseTime(text string) (t time.Time, ok bool) {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || text[len("2006-01-02T15")] != ':' || strings.Contains(text, ",") {
		return t, false
	}
	offset := text[max(0, len(text)-len("24:00")):]
	return t, strings.HasSuffix(text, "Z") || offset[:2] < "24" && offset[3:] < "60"
}

// decimal reads a number from lo to hi, both and the result in millionths, rounded to the nearest.
func (d *Decoder) decimal(field string, lo, hi int64) (n int64, ok bool, bad *refuse.Refusal) {
	raw, ok, bad := d.takes(jsontext.KindNumber, field, "")
	switch {
	case bad != nil && bad.Syntax:
		return 0, false, bad
	case bad == nil && !ok:
		return 0, false, nil
	case bad == nil:
		f, err := strconv.ParseFloat(string(raw), 64)
		if err == nil && f >= float64(lo)/jsonout.Micro && f <= float64(hi)/jsonout.Micro {
			return int64(math.Round(f * jsonout.Micro)), true, nil
		}
	}
	return 0, false, d.Invalid(field, "a number from "+string(jsonout.Decimal(nil, lo))+" to "+string(jsonout.Decimal(nil, hi)))
}

// backoff reads a backoff, nil if it is null. Missing fields have the values of a new cluster's default. With
// initial_ms 0 the task does not wait.
func (d *Decoder) backoff() (*fsm.Backoff, *refuse.Refusal) {
	b := fsm.Backoff{Factor: backoffFactor, Jitter: backoffJitter}
	said := false
	ok, bad := d.object("backoff", func(name []byte) (bad *refuse.Refusal) {
		var n int64
		var ok bool
		switch string(name) {
		case "initial_ms":
			b.InitialMS, said, bad = d.Integer("initial_ms", 0, wire.DelayMSMax)
		case "max_ms":
			b.MaxMS, _, bad = d.Integer("max_ms", 1, wire.DelayMSMax)
		case "factor":
			if n, ok, bad = d.decimal("factor", jsonout.Micro, factorMax); ok {
				b.Factor = n
			}
		case "jitter":
			if n, ok, bad = d.decimal("jitter", 0, jsonout.Micro); ok {
				b.Jitter = n
			}
		default:
			bad = unknownOf[wire.Backoff](d, name)
		}
		return bad
	})
	if !ok || bad != nil {
		return nil, bad
	}
	d.enter("backoff", -1)
	defer d.leave()
	switch {
	case !said:
		return nil, d.Missing("initial_ms")
	case b.MaxMS == 0:
		b.MaxMS = max(backoffMaxMS, b.InitialMS)
	case b.MaxMS < b.InitialMS:
		return nil, d.Invalid("max_ms", "an integer from initial_ms ("+strconv.FormatInt(b.InitialMS, 10)+") to "+strconv.Itoa(wire.DelayMSMax))
	}
	return &b, nil
}

// retention reads a retention_ms as the state machine represents it.
func (d *Decoder) retention() (ms int64, ok bool, bad *refuse.Refusal) {
	ms, ok, bad = d.Integer("retention_ms", -1, wire.RetentionMSMax)
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
func (d *Decoder) labels() (labels []fsm.Label, bad *refuse.Refusal) {
	const nameAllowed = "an object of up to 16 labels with names of 1 to 64 bytes without : and control characters"
	const valueAllowed = "a string of up to 64 bytes without control characters"
	_, bad = d.object("labels", func(name []byte) *refuse.Refusal {
		label := fsm.Label{Name: string(name)}
		if len(labels) == wire.LabelsMax || !wire.ValidKey(name, wire.LabelBytes) || strings.Contains(label.Name, ":") {
			if bad := d.skip(); bad != nil {
				return bad
			}
			return d.Invalid("", nameAllowed)
		}
		value, ok, bad := d.Text(label.Name, valueAllowed)
		if bad != nil {
			return bad
		}
		if !ok || len(value) > 0 && !wire.ValidKey(value, wire.LabelBytes) {
			return d.Invalid(label.Name, valueAllowed)
		}
		label.Value = string(value)
		labels = append(labels, label)
		return nil
	})
	slices.SortFunc(labels, func(a, b fsm.Label) int { return strings.Compare(a.Name, b.Name) })
	return labels, bad
}

// ParseCreated parses created_before or created_after. The state has milliseconds, so a finer time is rounded in the
// direction that keeps the comparison exact.
func ParseCreated(text string, before bool) (ms int64, ok bool) {
	t, ok := parseTime(text)
	if !ok {
		return 0, false
	}
	ms = t.UnixMilli()
	if !before {
		return max(ms, 0), true
	}
	if t.Nanosecond()%int(time.Millisecond) != 0 {
		ms++
	}
	return max(ms, 1), true // 0 would not filter
}
