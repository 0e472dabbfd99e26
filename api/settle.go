package api

import (
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/fsm"
)

// complete answers POST /api/tasks/{id}/complete.
func (r *request) complete() {
	cmd, bad := decodeComplete(r.target.id, r.http.Request.Body(), &r.server.cfg.Limits)
	if bad != nil {
		r.refuse(bad)
		return
	}
	r.settle(cmd)
}

// fail answers POST /api/tasks/{id}/fail.
func (r *request) fail() {
	cmd, bad := decodeFail(r.target.id, r.http.Request.Body(), &r.server.cfg.Limits)
	if bad != nil {
		r.refuse(bad)
		return
	}
	r.settle(cmd)
}

// release answers POST /api/tasks/{id}/release.
func (r *request) release() {
	cmd, bad := decodeRelease(r.target.id, r.http.Request.Body(), &r.server.cfg.Limits)
	if bad != nil {
		r.refuse(bad)
		return
	}
	r.settle(cmd)
}

// extend answers POST /api/tasks/{id}/extend.
func (r *request) extend() {
	cmd, bad := decodeExtend(r.target.id, r.http.Request.Body(), &r.server.cfg.Limits)
	if bad != nil {
		r.refuse(bad)
		return
	}
	p, ok := r.proposeTask(cmd)
	if !ok {
		return
	}
	b := appendSettledOpen(r.body(), &p)
	b = append(b, `,"lease_remaining_ms":`...)
	b = strconv.AppendInt(b, leaseLeft(p.Result.Task, p.Stamp), 10)
	b = append(b, `,"cancel_requested":false`...)
	r.send(fasthttp.StatusOK, appendRepeated(b, p.Result.Repeated))
}

// settle proposes a command about one task and answers with the task.
func (r *request) settle(cmd fsm.Command) {
	if p, ok := r.proposeTask(cmd); ok {
		b := appendSettledOpen(r.body(), &p)
		r.send(fasthttp.StatusOK, appendRepeated(b, p.Result.Repeated))
	}
}

// appendSettledOpen appends the task of an answer, without the closing brace.
func appendSettledOpen(b []byte, p *fsm.Proposed) []byte {
	b = append(b, `{"success":true,"task":`...)
	return appendTask(b, p.Result.Task, taskView{now: p.Stamp, params: true, result: true})
}
