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

	// changeTriesMax bounds how often a change follows the leadership to another node.
	changeTriesMax = 3
	// promoteWait bounds how long a promotion waits for a nonvoter that has almost caught
	// up.
	promoteWait = 5 * time.Second
)

// memberAct is an operator's action on a member.
type memberAct string

const (
	actRemove  memberAct = "remove"
	actPromote memberAct = "promote"
	actDemote  memberAct = "demote"
)

// event returns the trail event of the action.
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

// memberQuestion asks the leader to change a member. The leader identifies the operator by
// Key and refuses changes that no operator asked for, so that no member can remove another
// on its own.
type memberQuestion struct {
	Act    memberAct `json:"act"`
	NodeID string    `json:"node_id"`
	Key    string    `json:"key,omitempty"` // "" if there are no keys
}

// memberAnswer is the outcome; the zero value means success.
type memberAnswer struct {
	Refused  *nodes.MembershipRefused `json:"refused,omitempty"` // permanently
	Retry    string                   `json:"retry,omitempty"`   // why nothing was changed
	Stranger bool                     `json:"stranger,omitempty"`
}

// errNoMember refuses a change of a node that is not a member.
type errNoMember struct{ *nodes.MembershipRefused }

// Unwrap returns the refusal.
func (e errNoMember) Unwrap() error { return e.MembershipRefused }

// RemoveNode removes the member named nodeID, alive or dead, from the cluster. Its data
// stays in its folder, but it can never come back under that identity. A leader that
// removes itself first transfers leadership, and the next one removes it if it accepts by's
// key as an operator's. The call is refused if the remaining nodes could not go on. The
// node that makes the change records it in the trail. Errors after which nothing has
// changed: *nodes.MembershipRefused, nodes.ErrLevel, nodes.ErrNotLeader, nodes.ErrNoLeader,
// nodes.ErrOverloaded, nodes.ErrShuttingDown. nodes.ErrOutcomeUnknown if that is unknown.
func (n *Node) RemoveNode(ctx context.Context, nodeID string, by nodes.Operator) error {
	return n.changeMember(ctx, memberQuestion{Act: actRemove, NodeID: nodeID, Key: by.Key}, by)
}

// PromoteNode makes a nonvoter that has caught up a voter. Errors: those of RemoveNode.
func (n *Node) PromoteNode(ctx context.Context, nodeID string, by nodes.Operator) error {
	return n.changeMember(ctx, memberQuestion{Act: actPromote, NodeID: nodeID, Key: by.Key}, by)
}

// DemoteNode makes a voter a nonvoter until it is promoted again. A leader first transfers
// leadership. Errors: those of RemoveNode.
func (n *Node) DemoteNode(ctx context.Context, nodeID string, by nodes.Operator) error {
	return n.changeMember(ctx, memberQuestion{Act: actDemote, NodeID: nodeID, Key: by.Key}, by)
}

// changeMember makes the change here or, if it concerns this node, has the next leader make
// it.
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

// lockLeading locks the membership on the leader. Errors: those of notServing,
// nodes.ErrOverloaded.
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

// changeHere makes the change on the leader. If it concerns this node and mayMove is true,
// it transfers leadership instead and returns moved true.
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

// changeThere has the next leader make the change. It returns leads true if that is this
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

// tellChange records a change made by this node in the trail. The node that asked for it
// may not be a member any more. The change stands even if this fails.
func (n *Node) tellChange(q memberQuestion, by string) {
	ctx, cancel := context.WithTimeout(context.Background(), tellTimeout)
	defer cancel()
	if err := n.Tell(ctx, command.Tell{Kind: q.Act.event(), By: by, What: q.NodeID}, q.Key); err != nil {
		n.logger.Warn("a change of the membership is not in the trail", "act", string(q.Act), "node_id", q.NodeID, "by", by, "error", err)
	}
}

// actsFor returns the name of the operator for whom another node asks for a change. If
// answer is not nil, it is the reply instead.
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

// answerMember makes a change for a former leader.
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

// removeMember removes a member from the configuration. This and the functions below expect
// the membership to be locked.
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

// demoteMember records that the member should have no vote, so that no leader promotes it
// again, and then demotes it.
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

// promoteMember gives a vote to a member that has caught up.
func (n *Node) promoteMember(ctx context.Context, l *leadership, member nodes.NodeView) error {
	if member.Suffrage != suffrageVoter {
		if err := n.awaitNear(ctx, member); err != nil {
			return err
		}
	}
	if _, err := n.wishNonvoter(ctx, member.NodeRecord, false); err != nil || member.Suffrage == suffrageVoter {
		return err
	}
	// Raft would add a node again that another leader has removed in the meantime.
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

// awaitNear waits, for a limited time, until a nonvoter is close to the end of the log and
// has applied the same as this node.
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

// wishNonvoter records whether a node should stay without a vote. changed is false if its
// record says so already.
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
