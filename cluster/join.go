package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/joining"
	"github.com/claimq/claimq/cluster/peer"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

const (
	// joinAskTimeout bounds asking a node who it is.
	joinAskTimeout = 2 * time.Second
	// waitLogInterval is the interval at which a node logs that it waits to be joined.
	waitLogInterval = 30 * time.Second
)

// joins makes nodes members: those that an operator names, and those that present a join token.
type joins struct {
	*membership
	known *knownMembers
}

// join admits a waiting node, which is first asked who it is. A node that has data is refused,
// because it was removed or belongs to another cluster. See Node.JoinNode.
func (jn *joins) join(ctx context.Context, nodeID, peerAddr string, voter bool) error {
	l, unlock, err := jn.lockLeading(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	record, waits, err := jn.askWho(ctx, nodeID, peerAddr)
	if err != nil {
		return err
	}
	for _, s := range jn.servers() {
		if string(s.ID) == record.UUID {
			return jn.joinAgain(ctx, s, record, voter)
		}
	}
	if !waits {
		return &nodes.MembershipRefused{
			Reason: fmt.Sprintf("%s has data, and is no member of this cluster", nodeID),
			Advice: "It was removed, or belongs to another cluster: stop it, move its data folder away, start it again with an empty one, and repeat this call",
		}
	}
	record.Nonvoter = !voter
	if err := jn.admitLocked(ctx, l, record); err != nil {
		var refusal *joining.Refusal
		if errors.As(err, &refusal) {
			return &nodes.MembershipRefused{Reason: refusal.Text, Advice: "Then repeat this call"}
		}
		return err
	}
	jn.logger.Info("admitted a node", "node_id", nodeID, "uuid", record.UUID, "peer_addr", record.PeerAddr, "voter", voter)
	jn.tellAdmitted(ctx, record.UUID, record.PeerAddr) // if this fails, the next check of the members tells it
	return nil
}

// joinAgain is JoinNode for a member.
func (jn *joins) joinAgain(ctx context.Context, s raft.Server, record fsm.NodeRecord, voter bool) error {
	if s.Suffrage == raft.Voter && !voter {
		return &nodes.MembershipRefused{
			Reason: record.NodeID + " is a member already, and a voter",
			Advice: "Use `claimq cluster demote " + record.NodeID + "`",
		}
	}
	jn.tellAdmitted(ctx, record.UUID, string(s.Address))
	_, err := jn.wishNonvoter(ctx, record, !voter)
	return err
}

// askWho asks the node at peerAddr who it is. It must have that name, and be reachable at
// the address that it advertises.
func (jn *joins) askWho(ctx context.Context, nodeID, peerAddr string) (record fsm.NodeRecord, waits bool, err error) {
	for {
		asking, cancel := context.WithTimeout(ctx, joinAskTimeout)
		who, err := jn.known.askWhoIsAt(asking, peerAddr)
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

// admitLocked makes the node of record a nonvoter and writes the record. The caller has
// locked the membership. A *joining.Refusal is final.
func (jn *joins) admitLocked(ctx context.Context, l *leadership, record fsm.NodeRecord) error {
	members, level := jn.memberRecords(record)
	if err := joining.Check(record, members, level); err != nil {
		return err
	}
	if record.Nonvoter {
		// Write the wish first, or another leader might promote it before reading that.
		if _, err := jn.batcher.Propose(ctx, command.SetNode{Node: record}); err != nil {
			return err
		}
	}
	err := jn.change(ctx, func() raft.IndexFuture {
		return jn.raft.AddNonvoter(raft.ServerID(record.UUID), raft.ServerAddress(record.PeerAddr), 0, changeQueueMax)
	})
	if err != nil {
		return fmt.Errorf("add node: %w", err)
	}
	jn.recordLocked(l, record)
	return nil
}

// tellAdmitted tells a waiting node that it is a member. Other nodes ignore it.
func (jn *joins) tellAdmitted(ctx context.Context, uuid, addr string) {
	if jn.dir == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, joinAskTimeout)
	defer cancel()
	_, _ = ask[struct{}](ctx, jn.core, addr, peer.CallAdmitted, joining.Admission{UUID: uuid, ClusterID: jn.dir.Identity().ClusterID, Members: jn.known.introducing()})
}

// mayJoin returns nil if the node, which is no member yet, may become one without an
// operator's call: it presents a join token, which this uses. It runs on the leader with
// the membership locked. A *joining.Refusal is final; the joining node retries after any
// other error.
func (jn *joins) mayJoin(ctx context.Context, record fsm.NodeRecord, token string) error {
	if token == "" {
		return fmt.Errorf("an operator has to admit this node: run `claimq cluster join %s %s` against the cluster, or start the node with a join token (--join-token-file)",
			record.NodeID, record.PeerAddr)
	}
	hash := sha256.Sum256([]byte(token))
	known := false
	jn.fsm.Read(func(m *fsm.Machine) {
		known = slices.ContainsFunc(m.JoinTokens(), func(t *fsm.JoinToken) bool { return bytes.Equal(t.Hash, hash[:]) })
	})
	if !known { // write nothing for a node that guesses
		return errTokenRefused()
	}
	p, err := jn.batcher.Propose(ctx, command.UseJoinToken{Hash: hash[:], UUID: record.UUID, NodeID: record.NodeID})
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

// admitJoin makes the joining node a nonvoter if it presents a join token; it is promoted
// once it has caught up. Repeating it for a member succeeds.
func (jn *joins) admitJoin(ctx context.Context, req joining.Request) (clusterID string, err error) {
	l := jn.leader.Load()
	if l == nil || !l.serves() {
		return "", errors.New("this node does not lead")
	}
	unlock, err := jn.lockMembers(ctx)
	if err != nil {
		return "", err
	}
	// Keep the lock until the record is written, because another node may ask for the same
	// name.
	defer unlock()
	record := req.NodeRecord
	members, level := jn.memberRecords(record)
	if err := joining.Check(record, members, level); err != nil {
		return "", err
	}
	record.Nonvoter = false // a joining node cannot decide this
	for _, m := range members {
		if m.UUID == record.UUID {
			return jn.dir.Identity().ClusterID, nil
		}
	}
	if err := jn.mayJoin(ctx, record, req.Token); err != nil {
		return "", err
	}
	if err := jn.admitLocked(ctx, l, record); err != nil {
		return "", err
	}
	return jn.dir.Identity().ClusterID, nil
}
