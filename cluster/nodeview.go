package cluster

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/clocks"
	"github.com/claimq/claimq/cluster/lease"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/nodes"
)

// catchUpMax is the time to catch up after which a nonvoter is reported as a problem.
const catchUpMax = 5 * time.Minute

// viewer describes members by their own status and by what the asked node knows of them.
type viewer struct {
	uuid   string // of the asked node
	commit uint64 // by its knowledge
	// silent returns how long ago a follower was last heard of, and behind for how long a
	// nonvoter that should get a vote has been behind. Only the leader knows them.
	silent, behind func(raft.ServerID) (took time.Duration, ok bool)
}

// viewOf describes a node and, if it takes no part, why.
func (o *viewer) viewOf(s raft.Server, record fsm.NodeRecord, status peerStatus, err error) nodes.NodeView {
	v := nodes.NodeView{NodeRecord: record, Suffrage: suffrageVoter, State: "unknown", LastContactMS: -1}
	if s.Suffrage != raft.Voter {
		v.Suffrage = suffrageNonvoter
	}
	if err != nil {
		v.Problem = fmt.Sprintf("it does not answer on its peer port: %v", err)
		if since, ok := o.silent(s.ID); ok {
			v.LastContactMS = since.Milliseconds()
			v.Problem = fmt.Sprintf("it was last heard of %s ago and does not answer on its peer port: %v", since.Round(time.Second), err)
		}
		return v
	}
	v.State, v.LastContactMS, v.AppliedIndex, v.Room = status.State, status.LastContactMS, status.AppliedIndex, status.Room
	v.Zones = status.Zones
	v.Problem = o.problemOf(status)
	v.TakesPart = v.Problem == ""
	if v.TakesPart && status.DiskLow {
		v.Problem = "its disk is low: free some space before it is full, when the node stops"
	}
	if string(s.ID) == o.uuid {
		v.LastContactMS = 0
	}
	v.Healthy = v.Problem == ""
	return v
}

// problemOf says why a node that answers takes no part, or returns "".
func (o *viewer) problemOf(status peerStatus) string {
	switch {
	case status.Removed:
		return "it was removed from the cluster: stop it"
	case status.State == "candidate":
		return "it finds no leader"
	case status.Doubt != "":
		return "it " + status.Doubt
	case status.State == "follower" && (status.LastContactMS < 0 || status.LastContactMS > contactMax.Milliseconds()):
		return "it hears nothing from the leader"
	case status.AppliedIndex+readyLagMax < o.commit:
		return fmt.Sprintf("it is %d log entries behind", o.commit-status.AppliedIndex) + o.catchingUp(raft.ServerID(status.Record.UUID))
	}
	return ""
}

// warningOf says what a healthy node still needs, or returns "". newest is the highest
// feature level that any node knows.
func (o *viewer) warningOf(s raft.Server, status peerStatus, newest uint32) string {
	switch {
	case status.Record.Level < newest:
		return fmt.Sprintf("its version %s knows feature level %d, others know %d: run the new version on it", status.Record.Version, status.Record.Level, newest)
	case s.Suffrage != raft.Voter:
		if behind := o.catchingUp(s.ID); behind != "" {
			return "it is catching up" + behind
		}
	}
	return ""
}

// zonesOf says what to do about a node's time zones, or returns "". leads are the leader's,
// nil if unknown.
func zonesOf(status peerStatus, leads *nodes.Zones) string {
	if status.Zones == nil || leads == nil || *status.Zones == *leads {
		return ""
	}
	return fmt.Sprintf("its time zones are those of %s (%s), the leader's of %s (%s), so slots of schedules move when it leads: run one version and one zone_data_file on all nodes",
		status.Zones.Version, status.Zones.Sum, leads.Version, leads.Sum)
}

// majorityWallOf returns the majority of the voters' wall clocks, nil if too few have
// answered.
func majorityWallOf(servers []raft.Server, statuses []peerStatus) *lease.Wall {
	var walls []lease.Wall
	voters := 0
	for i, s := range servers {
		if s.Suffrage != raft.Voter {
			continue
		}
		voters++
		if statuses[i].WallNS != 0 {
			walls = append(walls, statuses[i].wall.Wall)
		}
	}
	majority, ok := lease.MajorityWall(walls, voters)
	if !ok {
		return nil
	}
	return &majority
}

// clockOf returns how many milliseconds a wall clock is ahead of the majority's, nil if
// unknown, and what to do about it, or "".
func clockOf(r clocks.Reading, majority *lease.Wall) (aheadMS *int64, problem string) {
	if r.NodeID == "" || majority == nil {
		return nil, ""
	}
	ahead, apart := r.Ahead(*majority), r.Apart(*majority)
	ms := ahead.Milliseconds()
	direction := "ahead of"
	if ahead < 0 {
		direction = "behind"
	}
	switch off := apart.Round(100 * time.Millisecond); {
	case !lease.Follows(apart):
		problem = fmt.Sprintf("its wall clock is %s %s what most voters' show, so times of day do not follow it when it leads: see that NTP sets it", off, direction)
	case apart > clocks.ApartMax:
		problem = fmt.Sprintf("its wall clock is %s %s what most voters' show: see that NTP sets it", off, direction)
	}
	return &ms, problem
}

// catchingUp describes the state of a nonvoter that should get a vote and is behind; "" for
// others. Only the leader knows.
func (o *viewer) catchingUp(id raft.ServerID) string {
	took, ok := o.behind(id)
	switch {
	case !ok:
		return ""
	case took < catchUpMax:
		return ", and gets its vote once it has caught up"
	}
	return fmt.Sprintf(", and has not caught up in %s: look at its disk and its network; it gets no vote before", took.Round(time.Second))
}

// laggards are the nonvoters that should get a vote and are behind. The zero value is ready
// to use.
type laggards struct {
	mu    sync.Mutex
	since map[raft.ServerID]time.Duration // guarded by mu; by this node's monotonic clock
}

// note records whether a nonvoter that should get a vote is still behind.
func (b *laggards) note(id raft.ServerID, behind bool, now time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch _, known := b.since[id]; {
	case !behind:
		delete(b.since, id)
	case !known:
		if b.since == nil {
			b.since = make(map[raft.ServerID]time.Duration)
		}
		b.since[id] = now
	}
}

// behind returns for how long it has been behind; ok is false if it is not.
func (b *laggards) behind(id raft.ServerID, now time.Duration) (took time.Duration, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	since, ok := b.since[id]
	return now - since, ok
}

// memberNamed returns the member with that name or UUID, or an errNoMember.
func memberNamed(view nodes.ClusterView, nodeID string) (nodes.NodeView, error) {
	names := make([]string, 0, len(view.Nodes))
	for _, v := range view.Nodes {
		if v.NodeID == nodeID || v.UUID == nodeID {
			return v, nil
		}
		names = append(names, v.NodeID)
	}
	return nodes.NodeView{}, errNoMember{&nodes.MembershipRefused{
		Reason: fmt.Sprintf("No member is named %q", nodeID),
		Advice: "The members are " + strings.Join(names, ", "),
	}}
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
