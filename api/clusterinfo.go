package api

import (
	"encoding/json"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/wire"
)

// cluster answers GET /api/cluster with what this node sees.
func (r *request) cluster() {
	if bad := refuseQuery(r.query); bad != nil {
		r.refuse(bad)
		return
	}
	view := r.server.node.Cluster(r.wait())
	answer := wire.Cluster{
		Success: true, Leader: view.Leader, Term: view.Term, FeatureLevel: view.FeatureLevel,
		Nodes: make([]wire.Node, len(view.Nodes)),
	}
	for i, n := range view.Nodes {
		answer.Nodes[i] = wire.Node{
			NodeID: n.NodeID, UUID: n.UUID, PeerAddr: n.PeerAddr, HTTPAddr: n.HTTPAddr,
			Suffrage: n.Suffrage, State: n.State, LastContactMS: n.LastContactMS,
			AppliedIndex: n.AppliedIndex, Version: n.Version, Healthy: n.Healthy, Problem: n.Problem,
		}
	}
	body, err := json.Marshal(answer)
	if err != nil {
		r.refuseCode(err)
		return
	}
	r.send(fasthttp.StatusOK, append(r.body(), body...))
}
