package api

import (
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/exchange"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/nodes"
)

// Cluster answers GET /api/cluster with this node's view.
func Cluster(r *exchange.Request) {
	view := r.Server.Node.Cluster(r.Wait())
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
	r.SendJSON(answer)
}

func wireNode(n nodes.NodeView) wire.Node {
	node := wire.Node{
		NodeID: n.NodeID, UUID: n.UUID, PeerAddr: n.PeerAddr, HTTPAddr: n.HTTPAddr,
		Suffrage: n.Suffrage, State: n.State, LastContactMS: n.LastContactMS, ClockAheadMS: n.ClockAheadMS,
		AppliedIndex: n.AppliedIndex, Version: n.Version, Healthy: n.Healthy, Problem: n.Problem,
	}
	if r := n.Room; r != nil {
		node.Room = &wire.Room{StateBytes: r.State, StateLimitBytes: r.StateMax, DiskFreeBytes: r.DiskFree, DiskFreeMinBytes: r.DiskMin}
	}
	if z := n.Zones; z != nil {
		node.TimeZones = &wire.Zones{Version: z.Version, Sum: z.Sum}
	}
	return node
}

// Upgrade answers POST /api/cluster/upgrade.
func Upgrade(r *exchange.Request) {
	d := r.Decoder()
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
		r.Refuse(bad)
		return
	}
	if dryRun {
		r.SendJSON(planUpgrade(r.Server.Node.Cluster(r.Wait())))
		return
	}
	level, err := r.Server.Node.Upgrade(r.Wait(), r.By())
	if err != nil {
		refuseMembership(r, err)
		return
	}
	b := append(r.Body(), `{"success":true,"feature_level":`...)
	b = strconv.AppendUint(b, uint64(level), 10)
	r.Send(fasthttp.StatusOK, append(b, '}'))
}

// planUpgrade describes what an upgrade would do.
func planUpgrade(view nodes.ClusterView) wire.Upgraded {
	plan := wire.Upgraded{Success: true, FeatureLevel: view.FeatureLevel, WouldBe: fsm.FeatureLevel, Nodes: []wire.UpgradeMember{}}
	for _, n := range view.Nodes {
		plan.Nodes = append(plan.Nodes, wire.UpgradeMember{NodeID: n.NodeID, Version: n.Version, FeatureLevel: n.Level, Answers: n.State != "unknown"})
		plan.WouldBe = min(plan.WouldBe, n.Level)
	}
	plan.WouldBe = max(plan.WouldBe, plan.FeatureLevel)
	return plan
}
