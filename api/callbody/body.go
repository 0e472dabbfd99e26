package callbody

import (
	"github.com/claimq/claimq/api/bound"
	"github.com/claimq/claimq/api/encode"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// Body is the body of one call about tasks: it reads the fields, makes the
// command and appends the answer. A batch's ops are read and answered by the
// same code.
type Body interface {
	// field reads the value of the field name, or refuses it.
	field(d *Decoder, name []byte) *refuse.Refusal
	// check checks what one field alone does not show, after the last one.
	check(d *Decoder) *refuse.Refusal
	// Command returns what was read.
	Command() command.Command
	// Answer appends the answer to the command, which was not refused.
	Answer(b []byte, p *nodes.Proposed) []byte
}

// Decode reads a whole body.
func Decode(c Body, body []byte, limits *bound.Limits) *refuse.Refusal {
	d := NewDecoder(body, limits)
	defer d.Free()
	if bad := d.Fields(func(name []byte) *refuse.Refusal { return c.field(d, name) }); bad != nil {
		return bad
	}
	return c.check(d)
}

// taskAnswer appends the answer that is the command's task.
func taskAnswer(b []byte, p *nodes.Proposed) []byte {
	return appendRepeated(appendTaskAnswer(b, p), p.Result.Repeated)
}

// appendTaskAnswer appends the command's task, and leaves the answer open.
func appendTaskAnswer(b []byte, p *nodes.Proposed) []byte {
	return appendResultTask(append(b, `{"success":true,"task":`...), p)
}

// appendResultTask appends the command's task, with its steps if the command
// tells them.
func appendResultTask(b []byte, p *nodes.Proposed) []byte {
	if p.Result.Gone {
		return encode.Gone(b, p.Result.Task)
	}
	return encode.Task(b, p.Result.Task, encode.View{Now: p.Stamp, Params: true, Result: true, Steps: stepsOf(&p.Result)})
}

// stepsOf returns the steps that a result tells, nil if it tells none.
func stepsOf(res *fsm.Result) []fsm.StepView {
	if res.Parent == nil {
		return nil
	}
	return res.Parent.Steps
}
