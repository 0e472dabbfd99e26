package cluster

import (
	"fmt"
	"strings"

	"github.com/claimq/claimq/fsm"
)

// memberNamed returns the member of that name, or UUID. Else it is an
// errNoMember.
func memberNamed(view fsm.ClusterView, nodeID string) (fsm.NodeView, error) {
	names := make([]string, 0, len(view.Nodes))
	for _, v := range view.Nodes {
		if v.NodeID == nodeID || v.UUID == nodeID {
			return v, nil
		}
		names = append(names, v.NodeID)
	}
	return fsm.NodeView{}, errNoMember{&fsm.MembershipRefused{
		Reason: fmt.Sprintf("No member is named %q", nodeID),
		Advice: "The members are " + strings.Join(names, ", "),
	}}
}

// changeable returns the member that the question is about, or why it may not be
// changed so.
func changeable(view fsm.ClusterView, q memberQuestion) (fsm.NodeView, error) {
	member, err := memberNamed(view, q.NodeID)
	if err != nil {
		return member, err
	}
	if q.Act == actPromote {
		if !member.TakesPart {
			return member, &fsm.MembershipRefused{
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

// withoutVote says why the cluster could not go on without the voter; nil if it
// could.
func withoutVote(view fsm.ClusterView, member fsm.NodeView) error {
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
		return &fsm.MembershipRefused{
			Reason: fmt.Sprintf("%s is the last voter", member.NodeID),
			Advice: "A cluster needs one: promote another node first, or stop this one instead",
		}
	case healthy < voters/2+1:
		return &fsm.MembershipRefused{
			Reason: fmt.Sprintf("Without %s only %d of %d voters would be healthy, too few to go on", member.NodeID, healthy, voters),
			Advice: "Bring the others back first, or join new nodes",
		}
	}
	return nil
}
