package api

import (
	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
)

// health answers GET /healthz: the process is up.
func (r *request) health() { r.sendState("alive") }

// ready answers GET /readyz: the node knows a leader and has caught up.
func (r *request) ready() {
	if r.server.draining.Load() {
		r.refuse(refuse.Because(wire.CodeShuttingDown))
		return
	}
	if err := r.server.node.Ready(); err != nil {
		r.refuse(refuseUnready(err))
		return
	}
	r.sendState("ready")
}

func refuseUnready(err error) *refuse.Refusal {
	return &refuse.Refusal{
		Code: wire.CodeNoLeader, Text: "The node is not ready: " + err.Error(),
		Advice: "Wait until the node knows a leader and has caught up with it",
	}
}

func (r *request) sendState(state string) {
	b := append(r.body(), `{"success":true,"status":`...)
	b = jsonout.String(b, state)
	b = append(b, `,"node_id":`...)
	b = jsonout.String(b, r.server.node.NodeID())
	b = append(b, `,"version":`...)
	b = jsonout.String(b, r.server.cfg.Version)
	r.send(fasthttp.StatusOK, append(b, '}'))
}
