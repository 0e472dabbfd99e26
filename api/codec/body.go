package codec

import (
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// Body is the body of one call about tasks: it reads the fields, makes the command and appends the answer. The ops of
// a batch use the same code.
type Body interface {
	// field reads the value of the field name, or refuses it.
	field(d *Decoder, name []byte) *refuse.Refusal
	// check validates what depends on several fields, after the last one.
	check(d *Decoder) *refuse.Refusal
	// Command returns the decoded command.
	Command() command.Command
	// Answer appends the answer to the command, which was not refused.
	Answer(b []byte, p *nodes.Proposed) []byte
}

// body is embedded in most bodies. It holds the command that the body is decoded into; the answer is the command's task.
type body[C command.Command] struct{ Cmd C }

func (c *body[C]) check(*Decoder) *refuse.Refusal { return nil }

// Command implements Body.
func (c *body[C]) Command() command.Command { return c.Cmd }

// Answer implements Body.
func (c *body[C]) Answer(b []byte, p *nodes.Proposed) []byte {
	return appendRepeated(appendTaskAnswer(b, p), p.Result.Repeated)
}

// TaskBody is the body of a call about one task.
type TaskBody interface {
	Body
	// setID sets the task.
	setID(id uint64)
}

// OfTask returns c, an empty body, as the body of a call about the task, for Decode.
func OfTask(c TaskBody, id uint64) Body {
	c.setID(id)
	return c
}

// Decode decodes a whole body.
func Decode(c Body, body []byte, limits *Limits) *refuse.Refusal {
	d := NewDecoder(body, limits)
	defer d.Free()
	if bad := d.Fields(func(name []byte) *refuse.Refusal { return c.field(d, name) }); bad != nil {
		return bad
	}
	return c.check(d)
}

// appendTaskAnswer appends the beginning of an answer, with the command's task.
func appendTaskAnswer(b []byte, p *nodes.Proposed) []byte {
	return appendResultTask(append(b, `{"success":true,"task":`...), p)
}

// appendResultTask appends the command's task, with its steps if the result has them.
func appendResultTask(b []byte, p *nodes.Proposed) []byte {
	if p.Result.Gone {
		return AppendGone(b, p.Result.Task)
	}
	return AppendTask(b, p.Result.Task, View{Now: p.Stamp, Params: true, Result: true, Steps: stepsOf(&p.Result)})
}

func stepsOf(res *fsm.Result) []fsm.StepView {
	if res.Parent == nil {
		return nil
	}
	return res.Parent.Steps
}

// AppendMinimal appends the body's answer with only the id and status of its task, for clients that know the task.
// Tasks that the call claims are complete.
func AppendMinimal(b []byte, body Body, p *nodes.Proposed) []byte {
	switch c := body.(type) {
	case *Claim, *Delete:
		return c.Answer(b, p)
	case *SubmitOne:
		done := &p.Result.Submitted[0]
		return append(appendCreated(appendMinimalTask(b, done.Task), done, false), '}')
	case interface {
		appendRest(b []byte, p *nodes.Proposed) []byte
	}:
		return c.appendRest(appendMinimalTask(b, p.Result.Task), p)
	}
	return appendRepeated(appendMinimalTask(b, p.Result.Task), p.Result.Repeated)
}

// appendMinimalTask appends the beginning of an answer, with a task.
func appendMinimalTask(b []byte, t *fsm.Task) []byte {
	b = jsonout.UintField(b, `{"success":true,"task":{"id":`, t.ID)
	b = append(b, `,"status":"`...)
	b = append(b, t.Status.String()...)
	return append(b, '"', '}')
}
