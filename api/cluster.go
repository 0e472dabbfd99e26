package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/codec"
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/nodes"
)

// getCluster answers GET /api/cluster with this node's view.
func getCluster(r *request) {
	view := r.node().Cluster(r.ctx())
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

// upgradeCluster answers POST /api/cluster/upgrade.
func upgradeCluster(r *request) {
	d := r.decoder()
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
		r.sendJSON(planUpgrade(r.node().Cluster(r.ctx())))
		return
	}
	level, err := r.node().Upgrade(r.ctx(), r.by())
	if err != nil {
		refuseMembership(r, err)
		return
	}
	b := append(r.buffer(), `{"success":true,"feature_level":`...)
	b = strconv.AppendUint(b, uint64(level), 10)
	r.send(fasthttp.StatusOK, append(b, '}'))
}

// planUpgrade describes what an upgrade would do.
func planUpgrade(view nodes.ClusterView) wire.Upgraded {
	plan := wire.Upgraded{Success: true, FeatureLevel: view.FeatureLevel, WouldBe: fsm.FeatureLevel(), Nodes: []wire.UpgradeMember{}}
	for _, n := range view.Nodes {
		plan.Nodes = append(plan.Nodes, wire.UpgradeMember{NodeID: n.NodeID, Version: n.Version, FeatureLevel: n.Level, Answers: n.State != "unknown"})
		plan.WouldBe = min(plan.WouldBe, n.Level)
	}
	plan.WouldBe = max(plan.WouldBe, plan.FeatureLevel)
	return plan
}

// nodeIDPattern matches the name and the UUID of a node. No node starts with a name of another form.
var nodeIDPattern = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

const nodeIDAllowed = "the name of a node, 1 to 64 of A-Z a-z 0-9 _ . -"

var joinTokenIDPattern = regexp.MustCompile(`^[0-9a-f]{12}$`)

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
func decodeMember(body []byte, limits *codec.Limits, join, optional bool) (req memberRequest, bad *refuse.Refusal) {
	req.voter = true
	addressed := false
	d := codec.NewDecoder(body, limits)
	defer d.Free()
	bad = d.Fields(func(name []byte) (bad *refuse.Refusal) {
		var text []byte
		switch {
		case string(name) == "node_id":
			req.nodeID, bad = matchingText(d, "node_id", nodeIDPattern, nodeIDAllowed)
		case join && string(name) == "peer_addr":
			text, _, bad = d.Text("peer_addr", "HOST:PORT")
			req.peerAddr, addressed = string(text), bad == nil && text != nil
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
	case join && !addressed:
		bad = d.Missing("peer_addr")
	case join && !isHostPort(req.peerAddr):
		bad = d.Invalid("peer_addr", "HOST:PORT")
	}
	return req, bad
}

// isHostPort reports whether text is host:port, as a node advertises it.
func isHostPort(text string) bool {
	host, port, err := net.SplitHostPort(text)
	if err != nil || len(text) > peerAddrMax || host == "" || port == "" {
		return false
	}
	n, err := net.LookupPort("tcp", port)
	return err == nil && n > 0
}

// matchingText reads a text that matches the pattern, "" if it is null.
func matchingText(d *codec.Decoder, field string, pattern *regexp.Regexp, allowed string) (string, *refuse.Refusal) {
	text, given, bad := d.Text(field, allowed)
	if bad == nil && given && !pattern.Match(text) {
		bad = d.Invalid(field, allowed)
	}
	return string(text), bad
}

// joinNode answers POST /api/cluster/join.
func joinNode(r *request) {
	req, ok := member(r, true, false)
	if !ok {
		return
	}
	if err := r.node().JoinNode(r.ctx(), req.nodeID, req.peerAddr, req.voter); err != nil {
		refuseMembership(r, err)
		return
	}
	r.tell(event.MemberAdded, req.nodeID)
	answerMember(r, req.nodeID)
}

// removeNode answers POST /api/cluster/remove.
func removeNode(r *request) {
	req, ok := member(r, false, false)
	if !ok {
		return
	}
	if err := r.node().RemoveNode(r.ctx(), req.nodeID, r.operator()); err != nil {
		refuseMembership(r, err)
		return
	}
	r.send(fasthttp.StatusOK, append(r.buffer(), `{"success":true}`...))
}

// promoteNode answers POST /api/cluster/promote.
func promoteNode(r *request) { changeSuffrage(r, r.node().PromoteNode) }

// demoteNode answers POST /api/cluster/demote.
func demoteNode(r *request) { changeSuffrage(r, r.node().DemoteNode) }

func changeSuffrage(r *request, change func(ctx context.Context, nodeID string, by nodes.Operator) error) {
	req, ok := member(r, false, false)
	if !ok {
		return
	}
	if err := change(r.ctx(), req.nodeID, r.operator()); err != nil {
		refuseMembership(r, err)
		return
	}
	answerMember(r, req.nodeID)
}

// transferLeadership answers POST /api/cluster/transfer.
func transferLeadership(r *request) {
	req, ok := member(r, false, true)
	if !ok {
		return
	}
	leader, err := r.node().Transfer(r.ctx(), req.nodeID)
	if err != nil {
		refuseMembership(r, err)
		return
	}
	r.tell(event.LeadershipTransferred, "to "+leader)
	r.sendJSON(wire.Transferred{Success: true, Leader: leader})
}

// getHashes answers GET /api/cluster/hash.
func getHashes(r *request) {
	view, err := r.node().Hashes(r.ctx())
	if err != nil {
		r.refuseError(err)
		return
	}
	answer := wire.ClusterHash{Success: true, Index: view.Index, Agree: view.Agree, Nodes: make([]wire.NodeHash, len(view.Nodes))}
	for i, n := range view.Nodes {
		answer.Nodes[i] = wire.NodeHash{NodeID: n.NodeID, Hash: n.Hash}
	}
	r.setIndex(view.Index)
	r.sendJSON(answer)
}

// member decodes the body of a call about a member. ok is false if it was refused.
func member(r *request, join, optional bool) (req memberRequest, ok bool) {
	req, bad := decodeMember(r.input(), r.limits(), join, optional)
	if bad != nil {
		r.refuse(bad)
		return req, false
	}
	return req, true
}

// refuseMembership answers why the membership was not changed.
func refuseMembership(r *request, err error) {
	var refused *nodes.MembershipRefused
	if errors.As(err, &refused) {
		r.refuse(&refuse.Refusal{Code: wire.CodeMembershipRefused, Text: refused.Reason, Advice: refused.Advice})
		return
	}
	r.refuseError(err)
}

// answerMember answers with the member as this node sees it now. It does not time out, because the change is done.
func answerMember(r *request, nodeID string) {
	answer := wire.Member{Success: true, Node: wire.Node{NodeID: nodeID, Suffrage: "nonvoter", State: "unknown", LastContactMS: -1}}
	for _, n := range r.node().Cluster(context.Background()).Nodes {
		if n.NodeID == nodeID || n.UUID == nodeID {
			answer.Node = wireNode(n)
		}
	}
	r.sendJSON(answer)
}

// setJoinToken answers POST /api/cluster/tokens. The client makes the token and sends only its hash.
func setJoinToken(r *request) {
	cmd, bad := decodeJoinToken(r.input(), r.limits())
	if bad != nil {
		r.refuse(bad)
		return
	}
	cmd.By = r.by()
	p, ok := r.propose(cmd)
	switch {
	case !ok:
	case p.Result.Code != "":
		r.refuse(&refuse.Refusal{Code: wire.CodeMembershipRefused, Text: "There are too many join tokens", Advice: "Revoke one that is needed no more; 'claimq cluster token list' shows them"})
	default:
		b := appendJoinToken(append(r.buffer(), `{"success":true,"token":`...), p.Result.JoinToken)
		r.send(fasthttp.StatusOK, append(b, '}'))
	}
}

// decodeJoinToken decodes the body of a call that creates a join token.
func decodeJoinToken(body []byte, limits *codec.Limits) (cmd command.SetJoinToken, bad *refuse.Refusal) {
	const hashAllowed = "the SHA-256 of the token, 64 digits of hex"
	cmd.Uses = 1
	d := codec.NewDecoder(body, limits)
	defer d.Free()
	bad = d.Fields(func(name []byte) (bad *refuse.Refusal) {
		switch string(name) {
		case "token_sha256":
			var text []byte
			if text, _, bad = d.Text("token_sha256", hashAllowed); bad == nil && text != nil {
				if cmd.Hash, _ = hex.DecodeString(string(text)); len(cmd.Hash) != sha256.Size {
					bad = d.Invalid("token_sha256", hashAllowed)
				}
			}
		case "expires_in_ms":
			cmd.LifeMS, _, bad = d.Integer("expires_in_ms", 1, fsm.JoinTokenLifeMax)
		case "uses":
			n, given, refused := d.Integer("uses", 1, fsm.JoinTokenUsesMax)
			if bad = refused; given && bad == nil {
				cmd.Uses = int32(n)
			}
		default:
			bad = d.Unknown(name)
		}
		return bad
	})
	switch {
	case bad != nil:
	case cmd.Hash == nil:
		bad = d.Missing("token_sha256")
	case cmd.LifeMS == 0:
		bad = d.Missing("expires_in_ms")
	}
	return cmd, bad
}

// listJoinTokens answers GET /api/cluster/tokens.
func listJoinTokens(r *request) {
	var tokens []*fsm.JoinToken
	if !r.read(func(m *fsm.Machine, _ fsm.Stamp) { tokens = m.JoinTokens() }) {
		return
	}
	b := jsonout.List(r.buffer(), `{"success":true,"tokens":`, len(tokens), func(b []byte, i int) []byte { return appendJoinToken(b, tokens[i]) })
	r.send(fasthttp.StatusOK, append(b, '}'))
}

// revokeJoinToken answers POST /api/cluster/tokens/revoke.
func revokeJoinToken(r *request) {
	var id string
	d := r.decoder()
	defer d.Free()
	bad := d.Fields(func(name []byte) (bad *refuse.Refusal) {
		if string(name) != "id" {
			return d.Unknown(name)
		}
		id, bad = matchingText(d, "id", joinTokenIDPattern, "the id of a join token, 12 hexadecimal digits in lower case")
		return bad
	})
	if bad == nil && id == "" {
		bad = d.Missing("id")
	}
	if bad != nil {
		r.refuse(bad)
		return
	}
	p, ok := r.propose(command.DeleteJoinToken{ID: id, By: r.by()})
	switch {
	case !ok:
	case p.Result.Code != "":
		r.refuse(&refuse.Refusal{Code: wire.CodeMembershipRefused, Text: fmt.Sprintf("No join token has the id %q", id), Advice: "It may have expired; 'claimq cluster token list' shows those that there are"})
	default:
		r.send(fasthttp.StatusOK, append(r.buffer(), `{"success":true}`...))
	}
}

func appendJoinToken(b []byte, t *fsm.JoinToken) []byte {
	b = append(append(b, `{"id":"`...), t.ID()...)
	b = jsonout.IntField(b, `","uses":`, int64(t.Uses))
	b = jsonout.IntField(b, `,"used":`, int64(len(t.UsedBy)))
	b = jsonout.TimeField(b, `,"created_at":`, t.CreatedAt)
	b = jsonout.TimeField(b, `,"expires_at":`, t.ExpiresAt)
	return append(b, '}')
}
