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

// about is what most bodies are made of: the command of their call, which answers with the
// task. It has no check.
type about[C command.Command] struct{ Cmd C }

func (c *about[C]) check(*Decoder) *refuse.Refusal { return nil }

// Command is that of Body.
func (c *about[C]) Command() command.Command { return c.Cmd }

// Answer is that of Body.
func (c *about[C]) Answer(b []byte, p *nodes.Proposed) []byte {
	return appendRepeated(appendTaskAnswer(b, p), p.Result.Repeated)
}

// OfTask is the body of a call about one task.
type OfTask interface {
	Body
	// setID says which task it is.
	setID(id uint64)
}

// About makes c, an empty body, that of a call about the task id, for Decode.
func About(c OfTask, id uint64) Body {
	c.setID(id)
	return c
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
