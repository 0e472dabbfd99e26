package api

import (
	"math"
	"unicode/utf8"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
)

// holdField reads worker_id and claim_token, which all settling calls have. ok
// is false for any other name.
func (d *decoder) holdField(name []byte, h *fsm.Hold) (ok bool, bad *refusal) {
	switch string(name) {
	case "worker_id":
		h.WorkerID, bad = d.workerID()
	case "claim_token":
		h.Token, bad = d.token()
	default:
		return false, nil
	}
	return true, bad
}

// token reads a claim_token, 0 if it is null.
func (d *decoder) token() (uint64, *refusal) {
	n, _, bad := d.integer("claim_token", 1, idMax)
	return uint64(n), bad
}

// settle reads the body of a settling call: the hold, and by field what else
// the call takes.
func (d *decoder) settle(h *fsm.Hold, field func(name []byte) *refusal) *refusal {
	bad := d.fields(func(name []byte) *refusal {
		if ok, bad := d.holdField(name, h); ok {
			return bad
		}
		return field(name)
	})
	if bad == nil && h.WorkerID == "" {
		return d.missing("worker_id")
	}
	return bad
}

// decodeComplete reads the body of POST /api/tasks/{id}/complete.
func decodeComplete(id uint64, body []byte, limits *Limits) (fsm.Complete, *refusal) {
	c := fsm.Complete{Hold: fsm.Hold{ID: id}}
	d := newDecoder(body, limits)
	defer d.free()
	bad := d.settle(&c.Hold, func(name []byte) (bad *refusal) {
		switch string(name) {
		case "result":
			c.Result, bad = d.raw("result", d.limits.ValueBytes)
		case "result_payload":
			c.ResultPayload, bad = d.base64("result_payload")
		default:
			bad = d.unknown(name)
		}
		return bad
	})
	if bad == nil && c.Result != nil && c.ResultPayload != nil {
		bad = &refusal{code: wire.CodeInvalidRequest, field: "result_payload", text: "result and result_payload are both given", advice: "Send at most one of result and result_payload"}
	}
	if len(c.ResultPayload) == 0 {
		c.ResultPayload = nil // no bytes are no result
	}
	return c, bad
}

// decodeFail reads the body of POST /api/tasks/{id}/fail.
func decodeFail(id uint64, body []byte, limits *Limits) (fsm.Fail, *refusal) {
	c := fsm.Fail{Hold: fsm.Hold{ID: id}}
	d := newDecoder(body, limits)
	defer d.free()
	given := false
	bad := d.settle(&c.Hold, func(name []byte) (bad *refusal) {
		if string(name) != "error" {
			return d.unknown(name)
		}
		const allowed = "a string without U+0000"
		text, ok, bad := d.text("error", allowed)
		if bad != nil {
			return bad
		}
		for _, b := range text {
			if b == 0 {
				return d.invalid("error", allowed)
			}
		}
		given = ok
		c.Error = string(cut(text, limits.ErrorBytes))
		return nil
	})
	if bad == nil && !given {
		bad = d.missing("error")
	}
	return c, bad
}

// cut returns the first bytes of text, at most as many as most, and only whole
// characters.
func cut(text []byte, most int) []byte {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// decodeExtend reads the body of POST /api/tasks/{id}/extend.
func decodeExtend(id uint64, body []byte, limits *Limits) (fsm.Extend, *refusal) {
	c := fsm.Extend{Hold: fsm.Hold{ID: id}}
	d := newDecoder(body, limits)
	defer d.free()
	bad := d.settle(&c.Hold, func(name []byte) (bad *refusal) {
		if string(name) != "lease_ms" {
			return d.unknown(name)
		}
		c.LeaseMS, _, bad = d.integer("lease_ms", leaseMSMin, leaseMSMax)
		return bad
	})
	return c, bad
}

// decodeRelease reads the body of POST /api/tasks/{id}/release.
func decodeRelease(id uint64, body []byte, limits *Limits) (fsm.Release, *refusal) {
	c := fsm.Release{Hold: fsm.Hold{ID: id}}
	d := newDecoder(body, limits)
	defer d.free()
	bad := d.settle(&c.Hold, d.unknown)
	return c, bad
}

// decodeRetry reads the body of POST /api/tasks/{id}/retry, which may be blank.
func decodeRetry(id uint64, body []byte, limits *Limits) (fsm.Retry, *refusal) {
	c := fsm.Retry{ID: id}
	d := newDecoder(body, limits)
	defer d.free()
	bad := d.fields(func(name []byte) (bad *refusal) {
		var n int64
		switch string(name) {
		case "claim_token":
			c.Token, bad = d.token()
		case "add_attempts":
			n, _, bad = d.integer("add_attempts", 0, math.MaxInt32)
			c.AddAttempts = int32(n)
		default:
			bad = d.unknown(name)
		}
		return bad
	})
	return c, bad
}
