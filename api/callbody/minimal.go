package callbody

import (
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/nodes"
)

// AppendMinimal appends the body's answer with only the id and status of its task, for clients that know the task.
// Tasks that the call claims are complete.
func AppendMinimal(b []byte, body Body, p *nodes.Proposed) []byte {
	switch c := body.(type) {
	case *Claim, *Delete:
		return c.Answer(b, p)
	case *One:
		done := &p.Result.Submitted[0]
		b = appendCreated(appendMinimalTask(b, done.Task), done.Created, done.SameRequest)
		return append(b, '}')
	case interface {
		rest(b []byte, p *nodes.Proposed) []byte
	}:
		return c.rest(appendMinimalTask(b, p.Result.Task), p)
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
