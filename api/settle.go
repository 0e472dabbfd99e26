package api

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
)

// holdBody has the fields that all settling calls have.
type holdBody struct{ hold fsm.Hold }

func holdOf(id uint64) holdBody { return holdBody{hold: fsm.Hold{ID: id}} }

// setID says which task the call is about.
func (h *holdBody) setID(id uint64) { h.hold.ID = id }

// holdField reads worker_id and claim_token. ok is false for any other name.
func (h *holdBody) holdField(d *decoder, name []byte) (ok bool, bad *refusal) {
	switch string(name) {
	case "worker_id":
		h.hold.WorkerID, bad = d.workerID()
	case "claim_token":
		h.hold.Token, bad = d.token()
	default:
		return false, nil
	}
	return true, bad
}

func (h *holdBody) check(d *decoder) *refusal {
	if h.hold.WorkerID == "" {
		return d.missing("worker_id")
	}
	return nil
}

// token reads a claim_token, 0 if it is null.
func (d *decoder) token() (uint64, *refusal) {
	n, _, bad := d.integer("claim_token", 1, idMax)
	return uint64(n), bad
}

// releaseBody is the body of POST /api/tasks/{id}/release.
type releaseBody struct {
	holdBody
	delayMS int64
}

func newRelease(id uint64) *releaseBody { return &releaseBody{holdBody: holdOf(id)} }

func (c *releaseBody) field(d *decoder, name []byte) *refusal {
	ok, bad := c.holdField(d, name)
	switch {
	case ok:
		return bad
	case string(name) != "delay_ms":
		return d.unknown(name)
	}
	c.delayMS, _, bad = d.integer("delay_ms", 0, delayMSMax)
	return bad
}

func (c *releaseBody) command() fsm.Command {
	return fsm.Release{Hold: c.hold, DelayMS: c.delayMS}
}

func (c *releaseBody) answer(b []byte, p *fsm.Proposed) []byte { return taskAnswer(b, p) }

// extendBody is the body of POST /api/tasks/{id}/extend.
type extendBody struct {
	holdBody
	leaseMS  int64
	progress []byte
}

func newExtend(id uint64) *extendBody { return &extendBody{holdBody: holdOf(id)} }

func (c *extendBody) field(d *decoder, name []byte) *refusal {
	ok, bad := c.holdField(d, name)
	if ok {
		return bad
	}
	switch string(name) {
	case "lease_ms":
		c.leaseMS, _, bad = d.integer("lease_ms", leaseMSMin, leaseMSMax)
	case "progress":
		c.progress, bad = d.raw("progress", progressBytes)
	default:
		bad = d.unknown(name)
	}
	return bad
}

func (c *extendBody) command() fsm.Command {
	return fsm.Extend{Hold: c.hold, LeaseMS: c.leaseMS, Progress: c.progress}
}

func (c *extendBody) answer(b []byte, p *fsm.Proposed) []byte {
	b = appendTaskAnswer(b, p)
	b = append(b, `,"lease_remaining_ms":`...)
	b = strconv.AppendInt(b, leaseLeft(p.Result.Task, p.Stamp), 10)
	b = append(b, `,"cancel_requested":`...)
	b = strconv.AppendBool(b, p.Result.Task.CancelRequested)
	return appendRepeated(b, p.Result.Repeated)
}

// failBody is the body of POST /api/tasks/{id}/fail.
type failBody struct {
	holdBody
	cmd   fsm.Fail
	given bool // error
}

func newFail(id uint64) *failBody { return &failBody{holdBody: holdOf(id)} }

func (c *failBody) field(d *decoder, name []byte) *refusal {
	ok, bad := c.holdField(d, name)
	if ok {
		return bad
	}
	switch string(name) {
	case "error":
		c.cmd.Error, c.given, bad = d.errorText()
	case "retry_in_ms":
		c.cmd.RetryInMS, c.cmd.RetryIn, bad = d.integer("retry_in_ms", 0, delayMSMax)
	case "permanent":
		c.cmd.Permanent, bad = d.boolean("permanent")
	default:
		bad = d.unknown(name)
	}
	return bad
}

// errorText reads error, cut at the limit. given is false if it is null.
func (d *decoder) errorText() (text string, given bool, bad *refusal) {
	const allowed = "a string without U+0000"
	b, given, bad := d.text("error", allowed)
	if bad != nil {
		return "", false, bad
	}
	if bytes.IndexByte(b, 0) >= 0 {
		return "", false, d.invalid("error", allowed)
	}
	return string(cut(b, d.limits.ErrorBytes)), given, nil
}

func (c *failBody) check(d *decoder) *refusal {
	if bad := c.holdBody.check(d); bad != nil {
		return bad
	}
	switch {
	case !c.given:
		return d.missing("error")
	case c.cmd.Permanent && c.cmd.RetryIn:
		return &refusal{
			code: wire.CodeInvalidRequest, field: d.path("retry_in_ms"), text: "permanent and retry_in_ms are both given",
			advice: "Send retry_in_ms for a failure that may pass, permanent for one that will not",
		}
	}
	return nil
}

func (c *failBody) command() fsm.Command {
	c.cmd.Hold = c.hold
	return c.cmd
}

func (c *failBody) answer(b []byte, p *fsm.Proposed) []byte { return taskAnswer(b, p) }

// cut returns the first bytes of text, at most as many as most, and only whole
// characters.
func cut[T ~string | ~[]byte](text T, most int) T {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}
