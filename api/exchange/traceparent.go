package exchange

import (
	"errors"

	"github.com/claimq/claimq/api/callbody"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// headerTraceparent is the W3C trace context of a request that submits tasks, as fasthttp spells it.
const headerTraceparent = "Traceparent"

// traceparent returns the request's trace context, or "" if it is missing or malformed, which is no reason to refuse
// a task.
func (r *Request) traceparent() string {
	v := r.HTTP.Request.Header.Peek(headerTraceparent)
	if len(v) == 0 || !wire.ValidTraceparent(v) {
		return ""
	}
	return string(v)
}

// Trace gives the request's trace context to the tasks that it submits, except those that have their own.
func (r *Request) Trace(tasks []fsm.NewTask) {
	if len(tasks) > 0 {
		setTrace(tasks, r.traceparent())
	}
}

func setTrace(tasks []fsm.NewTask, traceparent string) {
	for i := range tasks {
		traceOne(&tasks[i], traceparent)
	}
}

// traceOne sets the trace context of a task that has none, and copies the task's to its steps.
func traceOne(t *fsm.NewTask, traceparent string) {
	if t.Traceparent == "" {
		t.Traceparent = traceparent
	}
	if t.Parent == nil {
		return
	}
	for i := range t.Parent.Steps {
		t.Parent.Steps[i].Task.Traceparent = t.Traceparent
	}
}

// TraceOps is Trace for the tasks that the ops submit.
func (r *Request) TraceOps(req *callbody.Batch) {
	traceparent := r.traceparent()
	for _, body := range req.Ops {
		switch c := body.(type) {
		case *callbody.One:
			traceOne(&c.NewTask, traceparent)
		case *callbody.Complete:
			setTrace(c.Cmd.Submit, traceparent)
		}
	}
}

// untrace removes the trace contexts from a command that err refused for the cluster's feature level, and reports
// whether there were any; then the command should be proposed again. The header often comes from a proxy that knows
// nothing of that level.
func untrace(cmd command.Command, err error) (had bool) {
	if !errors.Is(err, nodes.ErrLevel) {
		return false
	}
	about := command.AboutOf(cmd)
	had = untraceTasks(about.Submits)
	for _, op := range about.Ops {
		had = untrace(op, err) || had
	}
	return had
}

func untraceTasks(tasks []fsm.NewTask) (had bool) {
	for i := range tasks {
		had = had || tasks[i].Traceparent != ""
		tasks[i].Traceparent = ""
	}
	return had
}
