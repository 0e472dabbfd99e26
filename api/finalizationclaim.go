package api

import (
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/fsm"
)

// The bounds of timeout_seconds.
const (
	timeoutSecondsMin     = 1
	timeoutSecondsMax     = 3_600
	timeoutSecondsDefault = 30
)

// actFinalization is act of a call about the finalization of a task.
func (r *request) actFinalization(c callBody) {
	if bad := decodeCall(c, r.http.Request.Body(), &r.server.cfg.Limits); bad != nil {
		r.refuse(bad)
		return
	}
	cmd := c.command()
	if p, ok := r.proposeTask(cmd); ok {
		r.send(fasthttp.StatusOK, c.answer(r.body(), &p))
		r.server.metrics.finalization.observe(r, cmd, p.Result.Parent)
	}
}

// processorBody has the field that all calls about a finalization have.
type processorBody struct{ processorID string }

// processorID reads a processor_id, "" if it is null. Anything but a well-formed
// one has the contract's own words.
func (d *decoder) processorID() (string, *refusal) {
	s, ok, bad := d.text("processor_id", "")
	switch {
	case bad != nil && bad.syntax:
		return "", bad
	case bad != nil, ok && !validProcessorID(s):
		return "", &refusal{
			code: d.code, field: d.path("processor_id"), text: "Invalid processor_id format",
			advice: "Send a processor_id of 1 to 128 of A-Z a-z 0-9 _ . : -",
		}
	}
	return string(s), nil
}

func (c *processorBody) check(d *decoder) *refusal {
	if c.processorID == "" {
		return d.missing("processor_id")
	}
	return nil
}

// timeout reads a timeout_seconds, in milliseconds, as it was before if it is
// null.
func (d *decoder) timeout(before int64) (ms int64, bad *refusal) {
	n, ok, bad := d.integer("timeout_seconds", timeoutSecondsMin, timeoutSecondsMax)
	if !ok {
		return before, bad
	}
	return n * 1_000, nil
}

// claimFinalizationBody is the body of POST /api/tasks/{id}/finalization/claim.
type claimFinalizationBody struct {
	processorBody
	id        uint64
	timeoutMS int64
}

func newClaimFinalization(id uint64) *claimFinalizationBody {
	return &claimFinalizationBody{id: id, timeoutMS: timeoutSecondsDefault * 1_000}
}

func (c *claimFinalizationBody) field(d *decoder, name []byte) (bad *refusal) {
	switch string(name) {
	case "processor_id":
		c.processorID, bad = d.processorID()
	case "timeout_seconds":
		c.timeoutMS, bad = d.timeout(c.timeoutMS)
	default:
		bad = d.unknown(name)
	}
	return bad
}

func (c *claimFinalizationBody) command() fsm.Command {
	return fsm.ClaimFinalization{ID: c.id, ProcessorID: c.processorID, TimeoutMS: c.timeoutMS}
}

func (c *claimFinalizationBody) answer(b []byte, p *fsm.Proposed) []byte {
	done := p.Result.Parent
	b = append(b, `{"success":true,"claimed":`...)
	b = strconv.AppendBool(b, done.Outcome.Claimed())
	b = append(b, `,"already_claimed_by":`...)
	b = appendWorker(b, done.Holder)
	b = append(b, `,"task_state":"`...)
	b = append(b, done.State.String()...)
	b = append(b, `","message":"`...)
	b = append(b, finalizationMessage(done.Outcome)...)
	b = append(b, `","claim_token":`...)
	return append(appendToken(b, done.Token), '}')
}

// finalizationMessage is the contract's message of what became of a claim.
func finalizationMessage(o fsm.FinalizationOutcome) string {
	switch o {
	case fsm.FinalizationClaimed:
		return "Successfully claimed for finalization"
	case fsm.FinalizationExtended:
		return "Claim extended"
	case fsm.FinalizationAlreadyClaimed:
		return "Task already claimed for finalization"
	case fsm.FinalizationAlreadyDone:
		return "Task already complete"
	case fsm.FinalizationNotReady:
		return "Task has no completed or failed steps"
	}
	return "Task not found"
}

// finalizationReason says why a claim was not got, "" if it was.
func finalizationReason(o fsm.FinalizationOutcome) string {
	switch o {
	case fsm.FinalizationClaimed, fsm.FinalizationExtended:
		return ""
	case fsm.FinalizationAlreadyClaimed:
		return "already_claimed"
	case fsm.FinalizationAlreadyDone:
		return "already_complete"
	case fsm.FinalizationNotReady:
		return "not_ready"
	}
	return "other"
}

// extendFinalizationBody is the body of POST .../finalization/extend.
type extendFinalizationBody struct {
	processorBody
	id        uint64
	timeoutMS int64 // 0: the claim's own
}

func newExtendFinalization(id uint64) *extendFinalizationBody {
	return &extendFinalizationBody{id: id}
}

func (c *extendFinalizationBody) field(d *decoder, name []byte) (bad *refusal) {
	switch string(name) {
	case "processor_id":
		c.processorID, bad = d.processorID()
	case "timeout_seconds":
		c.timeoutMS, bad = d.timeout(0)
	default:
		bad = d.unknown(name)
	}
	return bad
}

func (c *extendFinalizationBody) command() fsm.Command {
	return fsm.ExtendFinalization{ID: c.id, ProcessorID: c.processorID, TimeoutMS: c.timeoutMS}
}

func (c *extendFinalizationBody) answer(b []byte, p *fsm.Proposed) []byte {
	b = append(b, `{"success":true,"extended":`...)
	return append(strconv.AppendBool(b, p.Result.Parent.Done), '}')
}

// releaseFinalizationBody is the body of POST .../finalization/release.
type releaseFinalizationBody struct {
	processorBody
	id uint64
}

func newReleaseFinalization(id uint64) *releaseFinalizationBody {
	return &releaseFinalizationBody{id: id}
}

func (c *releaseFinalizationBody) field(d *decoder, name []byte) (bad *refusal) {
	if string(name) != "processor_id" {
		return d.unknown(name)
	}
	c.processorID, bad = d.processorID()
	return bad
}

func (c *releaseFinalizationBody) command() fsm.Command {
	return fsm.ReleaseFinalization{ID: c.id, ProcessorID: c.processorID}
}

func (c *releaseFinalizationBody) answer(b []byte, p *fsm.Proposed) []byte {
	b = append(b, `{"success":true,"released":`...)
	return append(strconv.AppendBool(b, p.Result.Parent.Done), '}')
}
