package api

import (
	"context"
	"errors"
	"net"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/bound"
	"github.com/claimq/claimq/api/callbody"
	"github.com/claimq/claimq/api/exchange"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/nodes"
)

// peerAddrMax bounds a peer address, in bytes.
const peerAddrMax = 256

// memberRequest is the body of a call about one member, present or future.
type memberRequest struct {
	nodeID   string
	peerAddr string
	voter    bool
}

// decodeMember decodes the body of a call about a member. join permits the fields of a join; optional permits leaving
// out the node.
func decodeMember(body []byte, limits *bound.Limits, join, optional bool) (req memberRequest, bad *refuse.Refusal) {
	req.voter = true
	d := callbody.NewDecoder(body, limits)
	defer d.Free()
	bad = d.Fields(func(name []byte) (bad *refuse.Refusal) {
		var text []byte
		switch {
		case string(name) == "node_id":
			text, _, bad = d.Text("node_id", "the name of a node")
			req.nodeID = string(text)
		case join && string(name) == "peer_addr":
			text, _, bad = d.Text("peer_addr", "HOST:PORT")
			req.peerAddr = string(text)
		case join && string(name) == "voter":
			null := d.IsNull()
			req.voter, bad = d.Boolean("voter")
			req.voter = req.voter || null
		default:
			bad = d.Unknown(name)
		}
		return bad
	})
	switch {
	case bad != nil:
	case req.nodeID == "" && !optional:
		bad = d.Missing("node_id")
	case join && req.peerAddr == "":
		bad = d.Missing("peer_addr")
	case join && !isHostPort(req.peerAddr):
		bad = d.Invalid("peer_addr", "HOST:PORT")
	}
	return req, bad
}

// isHostPort reports whether text is host:port, as a node advertises it.
func isHostPort(text string) bool {
	host, port, err := net.SplitHostPort(text)
	return err == nil && len(text) <= peerAddrMax && host != "" && port != "" && port != "0"
}

// JoinNode answers POST /api/cluster/join.
func JoinNode(r *exchange.Request) {
	req, ok := member(r, true, false)
	if !ok {
		return
	}
	if err := r.Server.Node.JoinNode(r.Wait(), req.nodeID, req.peerAddr, req.voter); err != nil {
		refuseMembership(r, err)
		return
	}
	r.Tell(event.MemberAdded, req.nodeID)
	answerMember(r, req.nodeID)
}

// RemoveNode answers POST /api/cluster/remove.
func RemoveNode(r *exchange.Request) {
	req, ok := member(r, false, false)
	if !ok {
		return
	}
	if err := r.Server.Node.RemoveNode(r.Wait(), req.nodeID, r.Operator()); err != nil {
		refuseMembership(r, err)
		return
	}
	r.Send(fasthttp.StatusOK, append(r.Body(), `{"success":true}`...))
}

// PromoteNode answers POST /api/cluster/promote.
func PromoteNode(r *exchange.Request) { changeSuffrage(r, r.Server.Node.PromoteNode) }

// DemoteNode answers POST /api/cluster/demote.
func DemoteNode(r *exchange.Request) { changeSuffrage(r, r.Server.Node.DemoteNode) }

func changeSuffrage(r *exchange.Request, change func(ctx context.Context, nodeID string, by nodes.Operator) error) {
	req, ok := member(r, false, false)
	if !ok {
		return
	}
	if err := change(r.Wait(), req.nodeID, r.Operator()); err != nil {
		refuseMembership(r, err)
		return
	}
	answerMember(r, req.nodeID)
}

// Transfer answers POST /api/cluster/transfer.
func Transfer(r *exchange.Request) {
	req, ok := member(r, false, true)
	if !ok {
		return
	}
	leader, err := r.Server.Node.Transfer(r.Wait(), req.nodeID)
	if err != nil {
		refuseMembership(r, err)
		return
	}
	r.Tell(event.LeadershipTransferred, "to "+leader)
	r.SendJSON(wire.Transferred{Success: true, Leader: leader})
}

// Hashes answers GET /api/cluster/hash.
func Hashes(r *exchange.Request) {
	view, err := r.Server.Node.Hashes(r.Wait())
	if err != nil {
		r.RefuseError(err)
		return
	}
	answer := wire.ClusterHash{Success: true, Index: view.Index, Agree: view.Agree, Nodes: make([]wire.NodeHash, len(view.Nodes))}
	for i, n := range view.Nodes {
		answer.Nodes[i] = wire.NodeHash{NodeID: n.NodeID, Hash: n.Hash}
	}
	r.SetIndex(view.Index)
	r.SendJSON(answer)
}

// member decodes the body of a call about a member. ok is false if it was refused.
func member(r *exchange.Request, join, optional bool) (req memberRequest, ok bool) {
	req, bad := decodeMember(r.HTTP.Request.Body(), &r.Server.Cfg.Limits, join, optional)
	if bad != nil {
		r.Refuse(bad)
		return req, false
	}
	return req, true
}

// refuseMembership answers why the membership was not changed.
func refuseMembership(r *exchange.Request, err error) {
	var refused *nodes.MembershipRefused
	if errors.As(err, &refused) {
		r.Refuse(&refuse.Refusal{Code: wire.CodeMembershipRefused, Text: refused.Reason, Advice: refused.Advice})
		return
	}
	r.RefuseError(err)
}

// answerMember answers with the member as this node sees it now. It does not time out, because the change is done.
func answerMember(r *exchange.Request, nodeID string) {
	answer := wire.Member{Success: true, Node: wire.Node{NodeID: nodeID, Suffrage: "nonvoter", State: "unknown", LastContactMS: -1}}
	for _, n := range r.Server.Node.Cluster(context.Background()).Nodes {
		if n.NodeID == nodeID || n.UUID == nodeID {
			answer.Node = wireNode(n)
		}
	}
	r.SendJSON(answer)
}
