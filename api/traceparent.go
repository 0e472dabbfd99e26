package api

import (
	"bytes"
	"errors"

	"github.com/claimq/claimq/api/callbody"
	"github.com/claimq/claimq/fsm"
)

// headerTraceparent is the W3C trace context of a request that submits tasks,
// as fasthttp spells it.
const headerTraceparent = "Traceparent"

// traceparentBytes is the length of a traceparent of version 00:
//
//	00-<32 hex: trace id>-<16 hex: parent id>-<2 hex: flags>
const traceparentBytes = 2 + 1 + 32 + 1 + 16 + 1 + 2

// traceparent returns the request's trace context, "" if there is none or it is
// ill-formed: that is no reason to refuse a task.
func (r *request) traceparent() string {
	v := r.http.Request.Header.Peek(headerTraceparent)
	if len(v) == 0 || !validTraceparent(v) {
		return ""
	}
	return string(v)
}

// validTraceparent reports whether v is a traceparent of version 00: hex digits
// in lower case, neither id all zero.
func validTraceparent(v []byte) bool {
	const traceEnd, parentEnd = 35, 52
	if len(v) != traceparentBytes || v[0] != '0' || v[1] != '0' || v[2] != '-' || v[traceEnd] != '-' || v[parentEnd] != '-' {
		return false
	}
	trace, parent, flags := v[3:traceEnd], v[traceEnd+1:parentEnd], v[parentEnd+1:]
	return lowerHex(trace) && lowerHex(parent) && lowerHex(flags) && !zeros(trace) && !zeros(parent)
}

func lowerHex(b []byte) bool {
	for _, c := range b {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func zeros(b []byte) bool { return len(bytes.Trim(b, "0")) == 0 }

// trace gives the request's trace context to the tasks that it submits.
func (r *request) trace(tasks []fsm.NewTask) {
	if len(tasks) > 0 {
		setTrace(tasks, r.traceparent())
	}
}

func setTrace(tasks []fsm.NewTask, traceparent string) {
	for i := range tasks {
		traceOne(&tasks[i], traceparent)
	}
}

// traceOne gives a trace context to a task and its steps.
func traceOne(t *fsm.NewTask, traceparent string) {
	t.Traceparent = traceparent
	if t.Parent == nil {
		return
	}
	for i := range t.Parent.Steps {
		t.Parent.Steps[i].Task.Traceparent = traceparent
	}
}

// traceOps gives the request's trace context to the tasks that the ops submit.
func (r *request) traceOps(req *callbody.Batch) {
	traceparent := r.traceparent()
	if traceparent == "" {
		return
	}
	for _, body := range req.Ops {
		switch c := body.(type) {
		case *callbody.One:
			traceOne(&c.NewTask, traceparent)
		case *callbody.Complete:
			setTrace(c.Submit, traceparent)
		}
	}
}

// untrace takes the trace contexts out of a command that err refused for the
// cluster's feature level, and reports whether it had any: it is then to be
// proposed again. Who sends the header is often a proxy, which knows nothing of
// that level.
func untrace(cmd fsm.Command, err error) (had bool) {
	if !errors.Is(err, fsm.ErrLevel) {
		return false
	}
	about := fsm.AboutOf(cmd)
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
