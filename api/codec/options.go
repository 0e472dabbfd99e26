package codec

import (
	"slices"

	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
)

// option is an optional field of a task: its name in JSON, how it is read and checked, how it is shown, and which tasks
// cannot have it.
type option struct {
	name  string
	notOf taskKinds
	read  func(d *Decoder, t *draft) *refuse.Refusal
	// show appends the field unless it has its default. It is nil for a field that appendTaskBody shows in another
	// place.
	show func(b []byte, o *fsm.Options) []byte
}

// taskKinds is a set of kinds of tasks that have fewer options than others.
type taskKinds uint8

const (
	steps     taskKinds = 1 << iota // steps of a parent
	schedules                       // tasks that a schedule submits, one for each slot
)

// options are the optional fields of a task, in the order in which they are shown. Those of parents are read in
// steps.go.
var options = []option{
	{"idempotency_key", steps | schedules, func(d *Decoder, t *draft) (bad *refuse.Refusal) {
		if t.Key, _, bad = d.key("idempotency_key", wire.KeyMax); wire.IsDots(t.Key) {
			bad = d.Invalid("idempotency_key", "other than . and .., which no path can have")
		}
		return bad
	}, nil},
	{"unique", steps | schedules, func(d *Decoder, t *draft) (bad *refuse.Refusal) {
		var unique string
		unique, bad = parsed(d, "unique", `"exists", "active", "replace" or "window"`, func(s string) (string, bool) {
			return s, s == "exists" || s == "active" || s == "replace" || s == "window"
		})
		t.Replace, t.window = unique == "replace", unique == "window"
		t.UniqueActive = unique == "active" || t.Replace
		return bad
	}, nil},
	{"unique_ms", steps | schedules, func(d *Decoder, t *draft) (bad *refuse.Refusal) {
		t.UniqueMS, _, bad = d.Integer("unique_ms", 1, wire.UniqueMSMax)
		return bad
	}, nil},
	{"run_at", schedules, func(d *Decoder, t *draft) (bad *refuse.Refusal) {
		t.RunAt, _, bad = d.instant("run_at")
		return bad
	}, nil},
	{"delay_ms", 0, func(d *Decoder, t *draft) (bad *refuse.Refusal) {
		t.DelayMS, t.delayed, bad = d.Integer("delay_ms", 0, wire.DelayMSMax)
		t.AtOnce = t.delayed && t.DelayMS == 0
		return bad
	}, nil},
	{"expires_at", schedules, func(d *Decoder, t *draft) (bad *refuse.Refusal) {
		t.ExpiresAt, _, bad = d.instant("expires_at")
		return bad
	}, nil},
	{"expires_again", schedules, func(d *Decoder, t *draft) (bad *refuse.Refusal) {
		t.ExpiresAgain, bad = d.Boolean("expires_again")
		return bad
	}, nil},
	{"backoff", 0, func(d *Decoder, t *draft) (bad *refuse.Refusal) {
		t.Backoff, bad = d.backoff()
		return bad
	}, func(b []byte, o *fsm.Options) []byte {
		if o.Backoff == nil {
			return b
		}
		return appendBackoff(b, `,"backoff":`, o.Backoff)
	}},
	{"retention_ms", steps, func(d *Decoder, t *draft) (bad *refuse.Refusal) {
		t.RetentionMS, _, bad = d.retention()
		return bad
	}, func(b []byte, o *fsm.Options) []byte {
		if o.RetentionMS == 0 {
			return b
		}
		return appendRetention(b, `,"retention_ms":`, o.RetentionMS)
	}},
	{"labels", 0, func(d *Decoder, t *draft) (bad *refuse.Refusal) {
		t.Labels, bad = d.labels()
		return bad
	}, func(b []byte, o *fsm.Options) []byte {
		if len(o.Labels) == 0 {
			return b
		}
		return appendLabels(b, `,"labels":`, o.Labels)
	}},
	{"attributes", steps | schedules, func(d *Decoder, t *draft) (bad *refuse.Refusal) {
		t.Attributes, bad = d.rawObject("attributes")
		return bad
	}, nil},
	{"group", 0, func(d *Decoder, t *draft) (bad *refuse.Refusal) {
		t.Group, _, bad = d.key("group", wire.GroupMax)
		return bad
	}, func(b []byte, o *fsm.Options) []byte {
		if o.Group == "" {
			return b
		}
		return jsonout.StringField(b, `,"group":`, o.Group)
	}},
	{"share_key", 0, func(d *Decoder, t *draft) (bad *refuse.Refusal) {
		t.ShareKey, _, bad = d.key("share_key", wire.ShareKeyMax)
		return bad
	}, func(b []byte, o *fsm.Options) []byte {
		if o.ShareKey == "" {
			return b
		}
		return jsonout.StringField(b, `,"share_key":`, o.ShareKey)
	}},
	{"wait_for_signal_ms", 0, func(d *Decoder, t *draft) (bad *refuse.Refusal) {
		t.SignalMS, _, bad = d.Integer("wait_for_signal_ms", 1, wire.DelayMSMax)
		return bad
	}, func(b []byte, o *fsm.Options) []byte {
		if o.SignalMS == 0 {
			return b
		}
		b = jsonout.IntField(b, `,"wait_for_signal_ms":`, o.SignalMS)
		switch {
		case o.Signalled:
			return append(b, `,"signalled":true`...)
		case o.SignalUntil != 0:
			return jsonout.TimeField(b, `,"signal_until":`, o.SignalUntil)
		}
		return b
	}},
	{"traceparent", steps | schedules, func(d *Decoder, t *draft) (bad *refuse.Refusal) {
		t.Traceparent, bad = parsed(d, "traceparent", "a W3C trace context in lower case, 00-<32 hex digits>-<16>-<2>",
			func(s string) (string, bool) { return s, wire.ValidTraceparent([]byte(s)) })
		return bad
	}, func(b []byte, o *fsm.Options) []byte {
		if o.Traceparent == "" {
			return b
		}
		return jsonout.WordField(b, `,"traceparent":`, o.Traceparent)
	}},
}

// optionsNotOf returns the names of the options that tasks of these kinds cannot have.
func optionsNotOf(kinds taskKinds) (names []string) {
	for _, o := range options {
		if o.notOf&kinds != 0 {
			names = append(names, o.name)
		}
	}
	return names
}

// taskOption reads an optional field of a task.
func (d *Decoder) taskOption(name []byte, t *draft) *refuse.Refusal {
	for i := range options {
		if options[i].name == string(name) {
			return options[i].read(d, t)
		}
	}
	if slices.Contains(ofParents, string(name)) {
		return d.parentField(name, t)
	}
	return d.unknownOfTask(name, t)
}

// appendOptions appends the options that have a show function.
func appendOptions(b []byte, o *fsm.Options) []byte {
	for i := range options {
		if show := options[i].show; show != nil {
			b = show(b, o)
		}
	}
	return b
}
