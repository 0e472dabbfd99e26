package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/joining"
	"github.com/claimq/claimq/cluster/peer"
	"github.com/claimq/claimq/cluster/storage"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

const (
	// inviteAskTimeout bounds asking a node who it is.
	inviteAskTimeout = 2 * time.Second
	// waitLogInterval is the interval at which a node logs that it waits to be joined.
	waitLogInterval = 30 * time.Second
)

// whoAnswer is a node's description of itself to a leader that is about to make it a
// member.
type whoAnswer struct {
	Record fsm.NodeRecord `json:"record"`
	// Waits says that it has no data and no cluster yet.
	Waits bool `json:"waits"`
}

// JoinNode makes the running node named nodeID, whose peer port is at peerAddr, a member.
// It becomes a voter once it has caught up, unless voter is false. Repeating the call for a
// member succeeds. Errors: those of RemoveNode.
func (n *Node) JoinNode(ctx context.Context, nodeID, peerAddr string, voter bool) error {
	l, unlock, err := n.lockLeading(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	record, waits, err := n.askWho(ctx, nodeID, peerAddr)
	if err != nil {
		return err
	}
	for _, s := range n.servers() {
		if string(s.ID) == record.UUID {
			return n.joinAgain(ctx, s, record, voter)
		}
	}
	if !waits {
		return &nodes.MembershipRefused{
			Reason: fmt.Sprintf("%s has data, and is no member of this cluster", nodeID),
			Advice: "It was removed, or belongs to another cluster: stop it, move its data folder away, start it again with an empty one, and repeat this call",
		}
	}
	record.Nonvoter = !voter
	if err := n.checkLevel(command.SetNode{Node: record}); err != nil {
		return err
	}
	if err := n.admitLocked(ctx, l, record); err != nil {
		var refusal *joining.Refusal
		if errors.As(err, &refusal) {
			return &nodes.MembershipRefused{Reason: refusal.Text, Advice: "Then repeat this call"}
		}
		return err
	}
	n.logger.Info("admitted a node", "node_id", nodeID, "uuid", record.UUID, "peer_addr", record.PeerAddr, "voter", voter)
	n.tellAdmitted(ctx, record.UUID, record.PeerAddr) // if this fails, the next check of the members tells it
	return nil
}

// joinAgain is JoinNode for a member.
func (n *Node) joinAgain(ctx context.Context, s raft.Server, record fsm.NodeRecord, voter bool) error {
	if s.Suffrage == raft.Voter && !voter {
		return &nodes.MembershipRefused{
			Reason: record.NodeID + " is a member already, and a voter",
			Advice: "Use `claimq cluster demote " + record.NodeID + "`",
		}
	}
	n.tellAdmitted(ctx, record.UUID, string(s.Address))
	_, err := n.wishNonvoter(ctx, record, !voter)
	return err
}

// askWho asks the node at peerAddr who it is. It must have that name, and be reachable at
// the address that it advertises.
func (n *Node) askWho(ctx context.Context, nodeID, peerAddr string) (record fsm.NodeRecord, waits bool, err error) {
	for {
		asking, cancel := context.WithTimeout(ctx, inviteAskTimeout)
		who, err := n.askWhoIsAt(asking, peerAddr)
		cancel()
		switch {
		case err != nil:
			return record, false, &nodes.MembershipRefused{
				Reason: fmt.Sprintf("No node could be asked at %s: %s", peerAddr, peer.Printable(err.Error())),
				Advice: fmt.Sprintf("Start it there first, with an empty data folder and the join key of this cluster: `claimq server --node-id %s --data-dir DIR --peer-addr %s`", nodeID, peerAddr),
			}
		case who.Record.NodeID != nodeID:
			return record, false, &nodes.MembershipRefused{
				Reason: fmt.Sprintf("The node at %s calls itself %q, not %q", peerAddr, peer.Printable(who.Record.NodeID), nodeID),
				Advice: "Name it so, or give the address of the other one",
			}
		case who.Record.UUID == "" || who.Record.PeerAddr == "":
			return record, false, &nodes.MembershipRefused{Reason: fmt.Sprintf("The node at %s does not say who it is", peerAddr), Advice: "Run this version on it"}
		case who.Record.UUID == record.UUID || who.Record.PeerAddr == peerAddr:
			return who.Record, who.Waits, nil
		case record.UUID != "":
			return record, false, &nodes.MembershipRefused{
				Reason: fmt.Sprintf("%s advertises %s as its peer address, where another node answers", nodeID, who.Record.PeerAddr),
				Advice: "Start it with --peer-advertise set to the address by which this cluster reaches it",
			}
		}
		record, peerAddr = who.Record, who.Record.PeerAddr
	}
}

// askWhoIsAt asks the node at a peer address who it is. The node has proven that it owns
// the record's identity.
func (n *Node) askWhoIsAt(ctx context.Context, addr string) (who whoAnswer, err error) {
	if n.peers == nil {
		return ask[whoAnswer](ctx, n, addr, peer.CallWho, struct{}{})
	}
	text, by, err := n.peers.Ask(ctx, addr, peer.CallWho, []byte("{}"))
	if err != nil {
		return who, err
	}
	if err := json.Unmarshal(text, &who); err != nil {
		return who, err
	}
	if who.Record.UUID != by.UUID {
		return whoAnswer{}, fmt.Errorf("node %q says that it is the node of identity %s, and is that of %s", by.NodeID, peer.Printable(who.Record.UUID), by.UUID)
	}
	return who, nil
}

// admitLocked makes the node of record a nonvoter and writes the record. The caller has
// locked the membership. A *joining.Refusal is final.
func (n *Node) admitLocked(ctx context.Context, l *leadership, record fsm.NodeRecord) error {
	members, level := n.memberRecords(record)
	if err := joining.Check(record, members, level); err != nil {
		return err
	}
	if record.Nonvoter {
		// Write the wish first, or another leader might promote it before reading that.
		if _, err := n.batcher.Propose(ctx, command.SetNode{Node: record}); err != nil {
			return err
		}
	}
	err := n.change(ctx, func() raft.IndexFuture {
		return n.raft.AddNonvoter(raft.ServerID(record.UUID), raft.ServerAddress(record.PeerAddr), 0, changeQueueMax)
	})
	if err != nil {
		return fmt.Errorf("add node: %w", err)
	}
	l.recordLocked(record)
	return nil
}

// memberRecords returns the members' records and the cluster's feature level. A member
// without a record has only its address, and the name in joining if it is that node.
func (n *Node) memberRecords(joining fsm.NodeRecord) (members []fsm.NodeRecord, level uint32) {
	servers := n.servers()
	n.fsm.Read(func(m *fsm.Machine) {
		level = m.Level()
		for _, s := range servers {
			r, ok := m.Node(string(s.ID))
			if !ok {
				r = fsm.NodeRecord{UUID: string(s.ID), PeerAddr: string(s.Address)}
				if r.UUID == joining.UUID {
					r.NodeID = joining.NodeID
				}
			}
			members = append(members, r)
		}
	})
	return members, level
}

// tellAdmitted tells a waiting node that it is a member. Other nodes ignore it.
func (n *Node) tellAdmitted(ctx context.Context, uuid, addr string) {
	if n.dir == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, inviteAskTimeout)
	defer cancel()
	_, _ = ask[struct{}](ctx, n, addr, peer.CallAdmitted, joining.Admission{UUID: uuid, ClusterID: n.dir.Identity().ClusterID, Members: n.introducing()})
}

// answerWho says who this node is.
func (n *Node) answerWho(context.Context, []byte) ([]byte, error) {
	return json.Marshal(whoAnswer{Record: n.record})
}

// serveInvitations lets a node without a cluster answer the leader that makes it a member.
func (o *opening) serveInvitations(n *Node) {
	o.peers.Handle(peer.CallWho, func(context.Context, peer.Hello, []byte) ([]byte, error) {
		return json.Marshal(whoAnswer{Record: n.record, Waits: true})
	})
	o.peers.Handle(peer.CallAdmitted, func(_ context.Context, from peer.Hello, body []byte) ([]byte, error) {
		a, err := peer.ReadQuestion[joining.Admission](body)
		if err != nil {
			return nil, err
		}
		if a.UUID != n.uuid || a.ClusterID == "" || a.ClusterID != from.ClusterID {
			return nil, peer.QuestionError("this admission is for another node")
		}
		a.Members = joining.IntroducedBy(storage.Introducer{UUID: from.UUID, PeerAddr: from.PeerAddr}, a.Members)
		select {
		case o.admitted <- a:
		default: // it has one already
		}
		return []byte("{}"), nil
	})
}

// awaitAdmission waits until an operator makes this node a member, if it has no data and
// was started without a cluster.
func (o *opening) awaitAdmission(ctx context.Context, n *Node) (a joining.Admission, err error) {
	ticker := time.NewTicker(waitLogInterval)
	defer ticker.Stop()
	for {
		o.cfg.Logger.Warn("this node has no data and waits to be joined: run the command against the cluster. "+
			"For a new cluster, start it with --bootstrap or --initial-cluster",
			"data_dir", o.cfg.DataDir, "command", fmt.Sprintf("claimq cluster join %s %s", n.record.NodeID, n.record.PeerAddr))
		select {
		case a = <-o.admitted:
			return a, nil
		case <-ticker.C:
		case <-ctx.Done():
			return a, fmt.Errorf("%w: %s: give --bootstrap for the first node of a new cluster, --initial-cluster for several, or --join: %w",
				ErrNoCluster, o.cfg.DataDir, context.Cause(ctx))
		}
	}
}

// mayJoin returns nil if the node, which is no member yet, may become one without an
// operator's call: it presents a join token, which this uses. It runs on the leader with
// the membership locked. A *joining.Refusal is final; the joining node retries after any
// other error.
func (n *Node) mayJoin(ctx context.Context, record fsm.NodeRecord, token string) error {
	if token == "" {
		return fmt.Errorf("an operator has to admit this node: run `claimq cluster join %s %s` against the cluster, or start the node with a join token (--join-token-file)",
			record.NodeID, record.PeerAddr)
	}
	hash := sha256.Sum256([]byte(token))
	known := false
	n.fsm.Read(func(m *fsm.Machine) {
		known = slices.ContainsFunc(m.JoinTokens(), func(t *fsm.JoinToken) bool { return bytes.Equal(t.Hash, hash[:]) })
	})
	if !known { // write nothing for a node that guesses
		return errTokenRefused()
	}
	p, err := n.batcher.Propose(ctx, command.UseJoinToken{Hash: hash[:], UUID: record.UUID, NodeID: record.NodeID})
	if err != nil {
		return fmt.Errorf("use the join token: %w", err)
	}
	if p.Result.Code != "" {
		return errTokenRefused()
	}
	return nil
}

func errTokenRefused() error {
	return &joining.Refusal{Text: "its join token is unknown, used up, revoked or expired: make another one with `claimq cluster token create`"}
}

// joinToken returns the join token of a joining node, or "".
func (c *Config) joinToken() (string, error) {
	if c.JoinToken == nil {
		return "", nil
	}
	token, err := c.JoinToken()
	if err == nil && len(token) > joining.TokenBytesMax {
		err = fmt.Errorf("the join token has %d characters, it must have %d or fewer", len(token), joining.TokenBytesMax)
	}
	return token, err
}
