package api

import (
	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/exchange"
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
)

// health answers GET /healthz: the process is running.
func (s *Server) health(r *exchange.Request) { s.sendState(r, "alive") }

// ready answers GET /readyz: the node knows a leader and has caught up.
func (s *Server) ready(r *exchange.Request) {
	if s.host.Leaving.Load() || s.host.Draining.Load() {
		r.Refuse(refuse.Because(wire.CodeShuttingDown))
		return
	}
	if err := s.cfg.Node.Ready(); err != nil {
		r.Refuse(refuseUnready(err))
		return
	}
	s.sendState(r, "ready")
}

func refuseUnready(err error) *refuse.Refusal {
	return refuse.New(wire.CodeNoLeader, "The node is not ready: "+err.Error(), "Wait until the node knows a leader and has caught up with it")
}

func (s *Server) sendState(r *exchange.Request, state string) {
	b := jsonout.WordField(r.Body(), `{"success":true,"status":`, state)
	b = jsonout.StringField(b, `,"node_id":`, s.cfg.Node.NodeID())
	b = jsonout.StringField(b, `,"version":`, s.cfg.Version)
	r.Send(fasthttp.StatusOK, append(b, '}'))
}
