package api

import (
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/callbody"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
)

// Cluster answers GET /api/cluster with what this node sees.
func Cluster(r *request) {
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
		answer.Nodes[i] = wireNode(n)
	}
	if u := view.Restoring; u != nil {
		answer.Restore = &wire.Restore{Index: u.Begin, Taken: u.Taken, Bytes: u.Bytes}
	}
	r.sendJSON(answer)
}

func wireNode(n fsm.NodeView) wire.Node {
	return wire.Node{
		NodeID: n.NodeID, UUID: n.UUID, PeerAddr: n.PeerAddr, HTTPAddr: n.HTTPAddr,
		Suffrage: n.Suffrage, State: n.State, LastContactMS: n.LastContactMS, ClockAheadMS: n.ClockAheadMS,
		AppliedIndex: n.AppliedIndex, Version: n.Version, Healthy: n.Healthy, Problem: n.Problem,
	}
}

// Upgrade answers POST /api/cluster/upgrade.
func Upgrade(r *request) {
	d := callbody.NewDecoder(r.http.Request.Body(), &r.server.cfg.Limits)
	defer d.Free()
	var dryRun bool
	bad := d.Fields(func(name []byte) (bad *refuse.Refusal) {
		if string(name) != "dry_run" {
			return d.Unknown(name)
		}
		dryRun, bad = d.Boolean("dry_run")
		return bad
	})
	if bad != nil {
		r.refuse(bad)
		return
	}
	if dryRun {
		r.sendJSON(planUpgrade(r.server.node.Cluster(r.wait())))
		return
	}
	level, err := r.server.node.Upgrade(r.wait(), r.by())
	if err != nil {
		refuseMembership(r, err)
		return
	}
	b := append(r.body(), `{"success":true,"feature_level":`...)
	b = strconv.AppendUint(b, uint64(level), 10)
	r.send(fasthttp.StatusOK, append(b, '}'))
}

// planUpgrade says what an upgrade would do.
func planUpgrade(view fsm.ClusterView) wire.Upgraded {
	plan := wire.Upgraded{Success: true, FeatureLevel: view.FeatureLevel, WouldBe: fsm.FeatureLevel, Nodes: []wire.UpgradeMember{}}
	for _, n := range view.Nodes {
		plan.Nodes = append(plan.Nodes, wire.UpgradeMember{NodeID: n.NodeID, Version: n.Version, FeatureLevel: n.Level, Answers: n.State != "unknown"})
		plan.WouldBe = min(plan.WouldBe, n.Level)
	}
	plan.WouldBe = max(plan.WouldBe, plan.FeatureLevel)
	return plan
}
