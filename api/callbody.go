package api

import (
	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/fsm"
)

// callBody is the body of one call about tasks: it reads the fields, makes the
// command and appends the answer. A batch's ops are read and answered by the
// same code.
type callBody interface {
	// field reads the value of the field name, or refuses it.
	field(d *decoder, name []byte) *refusal
	// check checks what one field alone does not show, after the last one.
	check(d *decoder) *refusal
	// command returns what was read.
	command() fsm.Command
	// answer appends the answer to the command, which was not refused.
	answer(b []byte, p *fsm.Proposed) []byte
}

// decodeCall reads a whole body.
func decodeCall(c callBody, body []byte, limits *Limits) *refusal {
	d := newDecoder(body, limits)
	defer d.free()
	if bad := d.fields(func(name []byte) *refusal { return c.field(d, name) }); bad != nil {
		return bad
	}
	return c.check(d)
}

// act answers a call whose answer is 200: it reads the body, proposes the
// command and says what became of it.
func (r *request) act(c callBody) {
	if bad := decodeCall(c, r.http.Request.Body(), &r.server.cfg.Limits); bad != nil {
		r.refuse(bad)
		return
	}
	if p, ok := r.proposeTask(c.command()); ok {
		r.send(fasthttp.StatusOK, c.answer(r.body(), &p))
	}
}

// taskAnswer appends the answer that is the command's task.
func taskAnswer(b []byte, p *fsm.Proposed) []byte {
	return appendRepeated(appendTaskAnswer(b, p), p.Result.Repeated)
}

// appendTaskAnswer appends the command's task, and leaves the answer open.
func appendTaskAnswer(b []byte, p *fsm.Proposed) []byte {
	return appendResultTask(append(b, `{"success":true,"task":`...), p)
}

// appendResultTask appends the command's task, with its steps if the command
// tells them.
func appendResultTask(b []byte, p *fsm.Proposed) []byte {
	if p.Result.Gone {
		return appendGone(b, p.Result.Task)
	}
	return appendTask(b, p.Result.Task, taskView{now: p.Stamp, params: true, result: true, steps: stepsOf(&p.Result)})
}

// stepsOf returns the steps that a result tells, nil if it tells none.
func stepsOf(res *fsm.Result) []fsm.StepView {
	if res.Parent == nil {
		return nil
	}
	return res.Parent.Steps
}
