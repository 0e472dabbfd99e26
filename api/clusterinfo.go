package api

import (
	"encoding/json"
	"errors"
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
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

// removeNode answers POST /api/cluster/remove.
func (r *request) removeNode() {
	nodeID, bad := decodeRemoveNode(r.http.Request.Body(), &r.server.cfg.Limits)
	if bad == nil {
		bad = refuseQuery(r.query)
	}
	if bad != nil {
		r.refuse(bad)
		return
	}
	err := r.server.node.RemoveNode(r.wait(), nodeID)
	var refused *fsm.MembershipRefused
	switch {
	case errors.As(err, &refused):
		r.refuse(&refusal{code: wire.CodeMembershipRefused, text: refused.Reason, advice: refused.Advice})
	case err != nil:
		r.refuseError(err)
	default:
		r.send(fasthttp.StatusOK, append(r.body(), `{"success":true}`...))
	}
}

// decodeRemoveNode reads the body of POST /api/cluster/remove: a node's name.
func decodeRemoveNode(body []byte, limits *Limits) (nodeID string, bad *refusal) {
	d := newDecoder(body, limits)
	defer d.free()
	bad = d.fields(func(name []byte) *refusal {
		if string(name) != "node_id" {
			return d.unknown(name)
		}
		text, _, bad := d.text("node_id", "the name of a member")
		nodeID = string(text)
		return bad
	})
	if bad == nil && nodeID == "" {
		bad = d.missing("node_id")
	}
	return nodeID, bad
}

// upgrade answers POST /api/cluster/upgrade.
func (r *request) upgrade() {
	d := newDecoder(r.http.Request.Body(), &r.server.cfg.Limits)
	defer d.free()
	if bad := d.fields(d.unknown); bad != nil {
		r.refuse(bad)
		return
	}
	level, err := r.server.node.Upgrade(r.wait(), r.by())
	var refused *fsm.MembershipRefused
	switch {
	case errors.As(err, &refused):
		r.refuse(&refusal{code: wire.CodeMembershipRefused, text: refused.Reason, advice: refused.Advice})
	case err != nil:
		r.refuseError(err)
	default:
		b := append(r.body(), `{"success":true,"feature_level":`...)
		b = strconv.AppendUint(b, uint64(level), 10)
		r.send(fasthttp.StatusOK, append(b, '}'))
	}
}
