package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/peer"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/nodes"
)

const (
	suffrageVoter    = "voter"
	suffrageNonvoter = "nonvoter"

	// changeTriesMax bounds how often a change moves on with the leadership.
	changeTriesMax = 3
	// promoteWait is how long an operator's promotion waits for a nonvoter that
	// is about to catch up.
	promoteWait = 5 * time.Second
)

// memberAct is what an operator does to a member.
type memberAct string

const (
	actRemove  memberAct = "remove"
	actPromote memberAct = "promote"
	actDemote  memberAct = "demote"
)

// event returns what the trail tells of the act.
func (a memberAct) event() event.Kind {
	switch a {
	case actPromote:
		return event.MemberPromoted
	case actDemote:
		return event.MemberDemoted
	default:
		return event.MemberRemoved
	}
}

// memberQuestion asks the leader for a change of one member. The leader finds out by
// Key whose act it is, and makes none that no operator asked for: no member removes
// another by its own will.
type memberQuestion struct {
	Act    memberAct `json:"act"`
	NodeID string    `json:"node_id"`
	Key    string    `json:"key,omitempty"` // "": there are no keys
}

// memberAnswer is what came of it; nothing set: it is done.
type memberAnswer struct {
	Refused  *nodes.MembershipRefused `json:"refused,omitempty"` // for good
	Retry    string                   `json:"retry,omitempty"`   // nothing was changed, because
	Stranger bool                     `json:"stranger,omitempty"`
}

// errNoMember is why a change of somebody who is no member is refused.
type errNoMember struct{ *nodes.MembershipRefused }

// Unwrap returns the refusal.
func (e errNoMember) Unwrap() error { return e.MembershipRefused }

// RemoveNode takes the member named nodeID, alive or dead, out of the cluster.
// Its data stays in its folder, but it can never come back under that identity.
// A leader hands over first, and the next one removes it, if it knows by's key for an
// operator's too. It is refused where the rest could not go on. Whoever does it tells
// the trail. Errors: *fsm.MembershipRefused, fsm.ErrLevel,
// fsm.ErrNotLeader, fsm.ErrNoLeader, fsm.ErrOverloaded, fsm.ErrShuttingDown
// (nothing was changed); fsm.ErrOutcomeUnknown.
func (n *Node) RemoveNode(ctx context.Context, nodeID string, by nodes.Operator) error {
	return n.changeMember(ctx, memberQuestion{Act: actRemove, NodeID: nodeID, Key: by.Key}, by)
}

// PromoteNode makes a nonvoter that has caught up a voter. Errors: RemoveNode's.
func (n *Node) PromoteNode(ctx context.Context, nodeID string, by nodes.Operator) error {
	return n.changeMember(ctx, memberQuestion{Act: actPromote, NodeID: nodeID, Key: by.Key}, by)
}

// DemoteNode makes a voter a nonvoter that stays one until it is promoted. A
// leader hands over first. Errors: RemoveNode's.
func (n *Node) DemoteNode(ctx context.Context, nodeID string, by nodes.Operator) error {
	return n.changeMember(ctx, memberQuestion{Act: actDemote, NodeID: nodeID, Key: by.Key}, by)
}

// changeMember makes the change here, or has the next leader make it when it is
// about this one.
func (n *Node) changeMember(ctx context.Context, q memberQuestion, by nodes.Operator) error {
	for range changeTriesMax {
		moved, err := n.changeHere(ctx, q, true)
		if !moved || err != nil {
			if err == nil {
				n.tellChange(q, by.Name)
			}
			return err
		}
		leads, err := n.changeThere(ctx, q)
		if !leads {
			return err
		}
	}
	return fmt.Errorf("%w: the leadership came back %d times", nodes.ErrNoLeader, changeTriesMax)
}

// lockLeading locks the membership on the leader. Errors: notServing's,
// fsm.ErrOverloaded.
func (n *Node) lockLeading(ctx context.Context) (l *leadership, unlock func(), err error) {
	if l, err = n.serving(); err != nil {
		return nil, nil, err
	}
	if n.raft == nil {
		return nil, nil, &nodes.MembershipRefused{Reason: "This node runs without Raft", Advice: "It has no other members"}
	}
	unlock, err = n.lockMembers(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: another change of the membership is under way: %w", nodes.ErrOverloaded, err)
	}
	return l, unlock, nil
}

// changeHere makes the change on the leader. If it is about this very node, and
// mayMove, the leadership is handed over instead, and moved is true.
func (n *Node) changeHere(ctx context.Context, q memberQuestion, mayMove bool) (moved bool, err error) {
	l, unlock, err := n.lockLeading(ctx)
	if err != nil {
		return false, err
	}
	defer unlock()
	view := n.Cluster(ctx)
	member, err := changeable(view, q)
	if err != nil {
		return false, err
	}
	if member.UUID == n.uuid && q.Act != actPromote {
		if !mayMove {
			return false, fmt.Errorf("%w: this node leads again", nodes.ErrNotLeader)
		}
		targets, err := transferTargets(view, "")
		if err == nil {
			err = n.moveLeadership(ctx, l, targets)
		}
		return err == nil, err
	}
	switch q.Act {
	case actRemove:
		err = n.removeMember(ctx, member)
	case actPromote:
		err = n.promoteMember(ctx, l, member)
	case actDemote:
		err = n.demoteMember(ctx, l, member)
	default:
		err = &nodes.MembershipRefused{Reason: fmt.Sprintf("The change %q is not known here", q.Act), Advice: "Run the same version on all nodes"}
	}
	return false, err
}

// changeThere has the next leader make the change. leads is true if that is this
// node again.
func (n *Node) changeThere(ctx context.Context, q memberQuestion) (leads bool, err error) {
	asked := false
	for {
		if n.IsLeader() {
			return true, nil
		}
		addr, id := n.raft.LeaderWithID()
		if id != "" && string(id) != n.uuid {
			answer, err := ask[memberAnswer](ctx, n, string(addr), callMember, q)
			switch {
			case err != nil:
				asked = true // it may have been done
			case answer.Refused != nil && answer.Stranger && asked && q.Act == actRemove:
				return false, nil
			case answer.Refused != nil:
				return false, answer.Refused
			case answer.Retry == "":
				return false, nil
			}
		}
		if !pause.For(ctx, leaderPollInterval) {
			if asked {
				return false, fmt.Errorf("%w: %w", nodes.ErrOutcomeUnknown, context.Cause(ctx))
			}
			return false, fmt.Errorf("%w: %w", nodes.ErrNoLeader, context.Cause(ctx))
		}
	}
}

// tellChange tells of a change that this node has made. Who asked for it may not be a
// member any more, so it is told where it was made; it stands if it could not be told.
func (n *Node) tellChange(q memberQuestion, by string) {
	ctx, cancel := context.WithTimeout(context.Background(), tellTimeout)
	defer cancel()
	if err := n.Tell(ctx, command.Tell{Kind: q.Act.event(), By: by, What: q.NodeID}, q.Key); err != nil {
		n.logger.Warn("a change of the membership is not in the trail", "act", string(q.Act), "node_id", q.NodeID, "by", by, "error", err)
	}
}

// actsFor returns the name of the operator for whom another node asks for a change. An
// answer that is not nil is what it is told instead.
func (n *Node) actsFor(q memberQuestion) (by string, answer *memberAnswer) {
	if n.operators.Load() == nil {
		return "", &memberAnswer{Retry: "this node is starting"}
	}
	by, ok := n.operator(q.Key)
	if !ok {
		return "", &memberAnswer{Refused: &nodes.MembershipRefused{
			Reason: "The next leader, " + n.cfg.NodeID + ", does not know the API key for an operator's",
			Advice: "Give all nodes the same keys, and ask again: only the leadership has changed",
		}}
	}
	return by, nil
}

// answerMember makes a change for a node that led before.
func (n *Node) answerMember(ctx context.Context, body []byte) ([]byte, error) {
	q, err := peer.ReadQuestion[memberQuestion](body)
	if err != nil {
		return nil, err
	}
	by, refused := n.actsFor(q)
	if refused != nil {
		return json.Marshal(refused)
	}
	ctx, cancel := context.WithTimeout(ctx, membershipTimeout)
	defer cancel()
	_, err = n.changeHere(ctx, q, false)
	if err == nil {
		n.tellChange(q, by)
	}
	var answer memberAnswer
	var stranger errNoMember
	answer.Stranger = errors.As(err, &stranger)
	switch {
	case err == nil, errors.As(err, &answer.Refused):
	case errors.Is(err, nodes.ErrOutcomeUnknown):
		return nil, err
	default:
		answer.Retry = err.Error()
	}
	return json.Marshal(answer)
}

// removeMember takes a member out of the configuration. The caller has locked
// the membership, here and below.
func (n *Node) removeMember(ctx context.Context, member nodes.NodeView) error {
	err := n.change(ctx, func() raft.IndexFuture {
		return n.raft.RemoveServer(raft.ServerID(member.UUID), 0, changeQueueMax)
	})
	if err != nil {
		return fmt.Errorf("remove node %s: %w", member.NodeID, err)
	}
	n.logger.Info("member removed", "node_id", member.NodeID, "uuid", member.UUID)
	n.tellRemoved(member)
	return nil
}

// demoteMember notes that the member is to have no vote, so that no leader gives
// it one back, and then takes it away.
func (n *Node) demoteMember(ctx context.Context, l *leadership, member nodes.NodeView) error {
	wished, err := n.wishNonvoter(ctx, member.NodeRecord, true)
	if err != nil || member.Suffrage != suffrageVoter {
		return err
	}
	err = n.change(ctx, func() raft.IndexFuture {
		return n.raft.DemoteVoter(raft.ServerID(member.UUID), 0, changeQueueMax)
	})
	if err == nil {
		n.logger.Info("voter demoted to nonvoter", "node_id", member.NodeID, "uuid", member.UUID)
		return nil
	}
	if wished && !errors.Is(err, nodes.ErrOutcomeUnknown) {
		_, undo := n.wishNonvoter(l.ctx, member.NodeRecord, false)
		err = errors.Join(err, undo)
	}
	return fmt.Errorf("demote node %s: %w", member.NodeID, err)
}

// promoteMember gives a member that has caught up a vote.
func (n *Node) promoteMember(ctx context.Context, l *leadership, member nodes.NodeView) error {
	if member.Suffrage != suffrageVoter {
		if err := n.awaitNear(ctx, member); err != nil {
			return err
		}
	}
	if _, err := n.wishNonvoter(ctx, member.NodeRecord, false); err != nil || member.Suffrage == suffrageVoter {
		return err
	}
	// Raft would add one again that another leader has removed meanwhile.
	servers := n.servers()
	at := slices.IndexFunc(servers, func(s raft.Server) bool { return string(s.ID) == member.UUID })
	if at < 0 {
		return errNoMember{&nodes.MembershipRefused{
			Reason: member.NodeID + " is no member any more",
			Advice: "Join it as a new node, with an empty data folder",
		}}
	}
	s := servers[at]
	err := n.change(ctx, func() raft.IndexFuture { return n.raft.AddVoter(s.ID, s.Address, 0, changeQueueMax) })
	if err != nil {
		return fmt.Errorf("promote node %s: %w", member.NodeID, err)
	}
	n.logger.Info("nonvoter promoted to voter", "node_id", member.NodeID, "uuid", s.ID, "peer_addr", s.Address)
	return nil
}

// awaitNear waits until a nonvoter is near enough to the end of the log and has applied
// what this node has, but not for long.
func (n *Node) awaitNear(ctx context.Context, member nodes.NodeView) error {
	ctx, cancel := context.WithTimeout(ctx, promoteWait)
	defer cancel()
	at := n.fsm.NewestChain()
	for {
		newest := n.fsm.NewestChain()
		status, err := ask[peerStatus](ctx, n, member.PeerAddr, callStatus, statusQuestion{ChainAt: at.Index})
		commit := n.raft.CommitIndex()
		near := err == nil && status.AppliedIndex+promoteLagMax >= commit
		switch {
		case near && status.Chain == at.String():
			return nil
		case near && status.Chain != "":
			return &nodes.MembershipRefused{
				Reason: fmt.Sprintf("%s has applied something else than this node up to log entry %d: its chain is %s, not %s", member.NodeID, at.Index, status.Chain, at),
				Advice: "Remove it from the cluster and join it again with an empty data folder",
			}
		}
		at = newest
		if pause.For(ctx, leaderPollInterval) {
			continue
		}
		reason := fmt.Sprintf("%s does not answer: %v", member.NodeID, err)
		if err == nil {
			reason = fmt.Sprintf("%s is %d log entries behind", member.NodeID, commit-min(commit, status.AppliedIndex))
		}
		return &nodes.MembershipRefused{Reason: reason, Advice: "A voter that lags would hold up writes when another one fails: promote it once it has caught up"}
	}
}

// wishNonvoter notes in a node's record whether it is to stay without a vote.
// changed is false if the record says so already.
func (n *Node) wishNonvoter(ctx context.Context, record fsm.NodeRecord, nonvoter bool) (changed bool, err error) {
	n.fsm.Read(func(m *fsm.Machine) {
		if have, ok := m.Node(record.UUID); ok {
			record = have
		} else {
			record.Nonvoter = false
		}
	})
	if record.Nonvoter == nonvoter {
		return false, nil
	}
	record.Nonvoter = nonvoter
	cmd := command.SetNode{Node: record}
	if err := n.checkLevel(cmd); err != nil {
		return false, err
	}
	if _, err := n.batcher.Propose(ctx, cmd); err != nil {
		return false, err
	}
	return true, nil
}
