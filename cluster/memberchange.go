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
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/nodes"
)

const (
	// changeTriesMax bounds how often a change follows the leadership to another node.
	changeTriesMax = 3
	// promoteWait bounds how long a promotion waits for a nonvoter that has almost caught
	// up.
	promoteWait = 5 * time.Second
)

// callMember is the call by which a former leader has the next one change a member: memberQuestion →
// memberAnswer.
const callMember = "member"

// memberChanges makes the changes of members that operators ask for: remove, promote, demote.
type memberChanges struct {
	*transfers
	operators *operators
}

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

// changeMember makes the change here or, if it concerns this node, has the next leader make
// it.
func (mc *memberChanges) changeMember(ctx context.Context, q memberQuestion, by nodes.Operator) error {
	for range changeTriesMax {
		moved, err := mc.changeHere(ctx, q, true)
		if !moved || err != nil {
			if err == nil {
				mc.tellChange(q, by.Name)
			}
			return err
		}
		leads, err := mc.changeThere(ctx, q)
		if !leads {
			return err
		}
	}
	return fmt.Errorf("%w: the leadership came back %d times", nodes.ErrNoLeader, changeTriesMax)
}

// changeHere makes the change on the leader. If it concerns this node and mayMove is true,
// it transfers leadership instead and returns moved true.
func (mc *memberChanges) changeHere(ctx context.Context, q memberQuestion, mayMove bool) (moved bool, err error) {
	l, unlock, err := mc.lockLeading(ctx)
	if err != nil {
		return false, err
	}
	defer unlock()
	view := mc.view(ctx)
	member, err := changeable(view, q)
	if err != nil {
		return false, err
	}
	if member.UUID == mc.uuid && q.Act != actPromote {
		if !mayMove {
			return false, fmt.Errorf("%w: this node leads again", nodes.ErrNotLeader)
		}
		targets, err := transferTargets(view, "")
		if err == nil {
			err = mc.moveLeadership(ctx, l, targets)
		}
		return err == nil, err
	}
	switch q.Act {
	case actRemove:
		err = mc.removeMember(ctx, member)
	case actPromote:
		err = mc.promoteMember(ctx, l, member)
	case actDemote:
		err = mc.demoteMember(ctx, l, member)
	default:
		err = &nodes.MembershipRefused{Reason: fmt.Sprintf("The change %q is not known here", q.Act), Advice: "Run the same version on all nodes"}
	}
	return false, err
}

// changeThere has the next leader make the change. It returns leads true if that is this
// node again.
func (mc *memberChanges) changeThere(ctx context.Context, q memberQuestion) (leads bool, err error) {
	asked := false
	for {
		if mc.IsLeader() {
			return true, nil
		}
		addr, id := mc.raft.LeaderWithID()
		if id != "" && string(id) != mc.uuid {
			answer, err := ask[memberAnswer](ctx, mc.core, string(addr), callMember, q)
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
func (mc *memberChanges) tellChange(q memberQuestion, by string) {
	ctx, cancel := context.WithTimeout(context.Background(), tellTimeout)
	defer cancel()
	if err := mc.operators.tell(ctx, command.Tell{Kind: q.Act.event(), By: by, What: q.NodeID}, q.Key); err != nil {
		mc.logger.Warn("a change of the membership is not in the trail", "act", string(q.Act), "node_id", q.NodeID, "by", by, "error", err)
	}
}

// actsFor returns the name of the operator for whom another node asks for a change. If
// answer is not nil, it is the reply instead.
func (mc *memberChanges) actsFor(q memberQuestion) (by string, answer *memberAnswer) {
	if mc.operators.find.Load() == nil {
		return "", &memberAnswer{Retry: "this node is starting"}
	}
	by, ok := mc.operators.operator(q.Key)
	if !ok {
		return "", &memberAnswer{Refused: &nodes.MembershipRefused{
			Reason: "The next leader, " + mc.cfg.NodeID + ", does not know the API key for an operator's",
			Advice: "Give all nodes the same keys, and ask again: only the leadership has changed",
		}}
	}
	return by, nil
}

// answerMember makes a change for a former leader.
func (mc *memberChanges) answerMember(ctx context.Context, body []byte) ([]byte, error) {
	q, err := peer.ReadQuestion[memberQuestion](body)
	if err != nil {
		return nil, err
	}
	by, refused := mc.actsFor(q)
	if refused != nil {
		return json.Marshal(refused)
	}
	ctx, cancel := context.WithTimeout(ctx, membershipTimeout)
	defer cancel()
	_, err = mc.changeHere(ctx, q, false)
	if err == nil {
		mc.tellChange(q, by)
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
func (mc *memberChanges) removeMember(ctx context.Context, member nodes.NodeView) error {
	err := mc.change(ctx, func() raft.IndexFuture {
		return mc.raft.RemoveServer(raft.ServerID(member.UUID), 0, changeQueueMax)
	})
	if err != nil {
		return fmt.Errorf("remove node %s: %w", member.NodeID, err)
	}
	mc.logger.Info("member removed", "node_id", member.NodeID, "uuid", member.UUID)
	mc.tellRemoved(member)
	return nil
}

// demoteMember records that the member should have no vote, so that no leader promotes it
// again, and then demotes it.
func (mc *memberChanges) demoteMember(ctx context.Context, l *leadership, member nodes.NodeView) error {
	wished, err := mc.wishNonvoter(ctx, member.NodeRecord, true)
	if err != nil || member.Suffrage != suffrageVoter {
		return err
	}
	err = mc.change(ctx, func() raft.IndexFuture {
		return mc.raft.DemoteVoter(raft.ServerID(member.UUID), 0, changeQueueMax)
	})
	if err == nil {
		mc.logger.Info("voter demoted to nonvoter", "node_id", member.NodeID, "uuid", member.UUID)
		return nil
	}
	if wished && !errors.Is(err, nodes.ErrOutcomeUnknown) {
		_, undo := mc.wishNonvoter(l.ctx, member.NodeRecord, false)
		err = errors.Join(err, undo)
	}
	return fmt.Errorf("demote node %s: %w", member.NodeID, err)
}

// promoteMember gives a vote to a member that has caught up.
func (mc *memberChanges) promoteMember(ctx context.Context, l *leadership, member nodes.NodeView) error {
	if member.Suffrage != suffrageVoter {
		if err := mc.awaitNear(ctx, member); err != nil {
			return err
		}
	}
	if _, err := mc.wishNonvoter(ctx, member.NodeRecord, false); err != nil || member.Suffrage == suffrageVoter {
		return err
	}
	// Raft would add a node again that another leader has removed in the meantime.
	servers := mc.servers()
	at := slices.IndexFunc(servers, func(s raft.Server) bool { return string(s.ID) == member.UUID })
	if at < 0 {
		return errNoMember{&nodes.MembershipRefused{
			Reason: member.NodeID + " is no member any more",
			Advice: "Join it as a new node, with an empty data folder",
		}}
	}
	s := servers[at]
	err := mc.change(ctx, func() raft.IndexFuture { return mc.raft.AddVoter(s.ID, s.Address, 0, changeQueueMax) })
	if err != nil {
		return fmt.Errorf("promote node %s: %w", member.NodeID, err)
	}
	mc.logger.Info("nonvoter promoted to voter", "node_id", member.NodeID, "uuid", s.ID, "peer_addr", s.Address)
	return nil
}

// awaitNear waits, for a limited time, until a nonvoter is close to the end of the log and
// has applied the same as this node.
func (mc *memberChanges) awaitNear(ctx context.Context, member nodes.NodeView) error {
	ctx, cancel := context.WithTimeout(ctx, promoteWait)
	defer cancel()
	at := mc.fsm.NewestChain()
	for {
		newest := mc.fsm.NewestChain()
		status, err := ask[peerStatus](ctx, mc.core, member.PeerAddr, callStatus, statusQuestion{ChainAt: at.Index})
		commit := mc.raft.CommitIndex()
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

// changeable returns the member of the question, or why it may not be changed.
func changeable(view nodes.ClusterView, q memberQuestion) (nodes.NodeView, error) {
	member, err := memberNamed(view, q.NodeID)
	if err != nil {
		return member, err
	}
	if q.Act == actPromote {
		if !member.TakesPart {
			return member, &nodes.MembershipRefused{
				Reason: fmt.Sprintf("%s could not vote: %s", member.NodeID, member.Problem),
				Advice: "Promote it once it is well and has caught up",
			}
		}
		return member, nil
	}
	if member.Suffrage != suffrageVoter {
		return member, nil
	}
	return member, withoutVote(view, member)
}

// withoutVote returns an error if the cluster could not go on without the voter.
func withoutVote(view nodes.ClusterView, member nodes.NodeView) error {
	voters, healthy := 0, 0
	for _, v := range view.Nodes {
		if v.Suffrage != suffrageVoter || v.UUID == member.UUID {
			continue
		}
		voters++
		if v.TakesPart {
			healthy++
		}
	}
	switch {
	case voters == 0:
		return &nodes.MembershipRefused{
			Reason: fmt.Sprintf("%s is the last voter", member.NodeID),
			Advice: "A cluster needs one: promote another node first, or stop this one instead",
		}
	case healthy < voters/2+1:
		return &nodes.MembershipRefused{
			Reason: fmt.Sprintf("Without %s only %d of %d voters would be healthy, too few to go on", member.NodeID, healthy, voters),
			Advice: "Bring the others back first, or join new nodes",
		}
	}
	return nil
}

// tellRemoved makes a removed node check at once whether it was removed. If it cannot be
// reached it finds out by itself.
func (mc *memberChanges) tellRemoved(member nodes.NodeView) {
	if member.UUID == mc.uuid {
		return
	}
	ctx, cancel := context.WithTimeout(mc.ctx, statusTimeout)
	defer cancel()
	_, _ = ask[struct{}](ctx, mc.core, member.PeerAddr, callNudge, struct{}{})
}
