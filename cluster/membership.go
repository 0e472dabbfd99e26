package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/joining"
	"github.com/claimq/claimq/cluster/replica"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/nodes"
)

const (
	// memberInterval is how often the leader looks after the members.
	memberInterval = time.Second
	// memberAskInterval is how often it asks them who they are.
	memberAskInterval = 5 * time.Second
	// membershipTimeout bounds one change of the membership, of which changeQueueMax
	// is how long it waits for Raft to be done with the one before.
	membershipTimeout = 10 * time.Second
	changeQueueMax    = 5 * time.Second
	// promoteLagMax is how far, in entries, a nonvoter may be behind to become
	// a voter, and promoteLooks how many looks in a row it must be that near: a
	// voter that lags would hold up commits when another fails.
	promoteLagMax = 64
	promoteLooks  = 3
)

// memberLooks is what a leader keeps from one look at the members to the next. It
// belongs to runMembers.
type memberLooks struct {
	near map[raft.ServerID]int // looks in a row that a nonvoter could have been promoted
	// at is where the chains are compared: what had been applied here at the look before,
	// so that who is alive has applied it too.
	at replica.ChainPoint
}

// runMembers keeps the node records right, compares what the members have applied and
// promotes nonvoters, until the scope ends.
func (l *leadership) runMembers() {
	looks := &memberLooks{near: make(map[raft.ServerID]int), at: l.node.fsm.NewestChain()}
	asked := time.Duration(-1)
	for {
		now := l.node.clock.Mono()
		ask := asked < 0 || now-asked >= memberAskInterval
		if ask {
			asked = now
		}
		newest := l.node.fsm.NewestChain()
		l.lookAfterMembers(looks, ask)
		looks.at = newest
		if !pause.For(l.ctx, pause.Beat(memberInterval)) {
			return
		}
	}
}

// lookAfterMembers asks all other members, or else those without a vote, what they
// say of themselves, and does what follows from it.
func (l *leadership) lookAfterMembers(looks *memberLooks, askAll bool) {
	n := l.node
	l.record(n.record)
	var asked []raft.Server
	for _, s := range n.servers() {
		switch {
		case string(s.ID) == n.uuid:
			l.move(s, n.record.PeerAddr)
		case askAll || s.Suffrage != raft.Voter:
			asked = append(asked, s)
		}
	}
	statuses, errs := n.askStatuses(l.ctx, asked, statusQuestion{ChainAt: looks.at.Index})
	if l.ctx.Err() != nil {
		return
	}
	if askAll {
		chains := n.compareAt(looks.at)
		for i, s := range asked {
			chains.note(string(s.ID), statuses[i].Chain)
		}
		l.judge(chains)
	}
	for i, s := range asked {
		if errs[i] != nil {
			looks.near[s.ID] = 0
			if s.Suffrage != raft.Voter {
				n.tellAdmitted(l.ctx, string(s.ID), string(s.Address))
			}
			continue
		}
		l.lookAfter(s, &statuses[i], looks)
	}
	l.followWalls()
	l.forgetStrangers()
}

// lookAfter does what follows from what a member says of itself: a nonvoter that is to
// get a vote gets it at the promoteLooks-th look in a row that it is near the end of
// the log and has applied what this node has.
func (l *leadership) lookAfter(s raft.Server, status *peerStatus, looks *memberLooks) {
	l.noteWall(s.ID, status)
	l.record(status.Record)
	l.move(s, status.Record.PeerAddr)
	if s.Suffrage == raft.Voter || l.keptNonvoter(s) {
		return
	}
	behind := status.AppliedIndex+promoteLagMax < l.node.raft.CommitIndex()
	l.laggards.note(s.ID, behind, l.node.clock.Mono())
	if behind || status.Chain != looks.at.String() {
		looks.near[s.ID] = 0
		return
	}
	if looks.near[s.ID]++; looks.near[s.ID] >= promoteLooks {
		l.promote(s)
	}
}

// record logs a node's record if the state has another one, or none.
func (l *leadership) record(r fsm.NodeRecord) {
	if l.recorded(r) {
		return
	}
	unlock, err := l.node.lockMembers(l.ctx)
	if err != nil {
		return
	}
	defer unlock()
	l.recordLocked(r)
}

// recorded reports whether the state has the record, but for what an operator
// wishes.
func (l *leadership) recorded(r fsm.NodeRecord) bool {
	var have fsm.NodeRecord
	l.node.fsm.Read(func(m *fsm.Machine) { have, _ = m.Node(r.UUID) })
	r.Nonvoter = have.Nonvoter
	return have == r || r.NodeID == ""
}

// recordLocked is record for who has locked the membership: an operator's wish,
// which the node itself does not know, stays what it is.
func (l *leadership) recordLocked(r fsm.NodeRecord) {
	if l.recorded(r) {
		return
	}
	l.node.fsm.Read(func(m *fsm.Machine) {
		if have, ok := m.Node(r.UUID); ok {
			r.Nonvoter = have.Nonvoter
		}
	})
	if err := l.propose(command.SetNode{Node: r}); err != nil && l.ctx.Err() == nil {
		l.node.logger.Warn("node record not written, trying again", "node_id", r.NodeID, "error", err)
	}
}

// move notes a member's new peer address.
func (l *leadership) move(s raft.Server, addr string) {
	if addr == "" || addr == string(s.Address) {
		return
	}
	unlock, err := l.node.lockMembers(l.ctx)
	if err != nil {
		return
	}
	defer unlock()
	if slices.Contains(l.node.servers(), s) {
		l.moveLocked(l.ctx, s, addr)
	}
}

// keptNonvoter reports whether an operator wants the node to have no vote. One
// whose record is not there yet is not known.
func (l *leadership) keptNonvoter(s raft.Server) bool {
	record, ok := fsm.NodeRecord{}, false
	l.node.fsm.Read(func(m *fsm.Machine) { record, ok = m.Node(string(s.ID)) })
	return !ok || record.Nonvoter
}

// forgetStrangers removes the records of nodes that are no longer members. It
// looks at the records first: a node becomes a member before it has one, or else
// under the lock.
func (l *leadership) forgetStrangers() {
	var records []fsm.NodeRecord
	l.node.fsm.Read(func(m *fsm.Machine) { records = m.Nodes() })
	if !l.strangerAmong(records) {
		return
	}
	unlock, err := l.node.lockMembers(l.ctx)
	if err != nil {
		return
	}
	defer unlock()
	members := l.memberUUIDs()
	for _, r := range records {
		if !members[r.UUID] {
			_ = l.propose(command.RemoveNode{UUID: r.UUID}) // else at the next look
		}
	}
}

func (l *leadership) strangerAmong(records []fsm.NodeRecord) bool {
	members := l.memberUUIDs()
	return slices.ContainsFunc(records, func(r fsm.NodeRecord) bool { return !members[r.UUID] })
}

func (l *leadership) memberUUIDs() map[string]bool {
	members := map[string]bool{l.node.uuid: true}
	for _, s := range l.node.servers() {
		members[string(s.ID)] = true
	}
	return members
}

func (l *leadership) promote(s raft.Server) {
	n := l.node
	unlock, err := n.lockMembers(l.ctx)
	if err != nil {
		return // the next look comes
	}
	defer unlock()
	// It may have been removed while others were asked: Raft would add it again.
	if !slices.Contains(n.servers(), s) || l.keptNonvoter(s) {
		return
	}
	err = n.change(l.ctx, func() raft.IndexFuture {
		return n.raft.AddVoter(s.ID, s.Address, 0, changeQueueMax)
	})
	if err != nil {
		n.logger.Warn("nonvoter not promoted, trying again", "uuid", s.ID, "error", err)
		return
	}
	n.logger.Info("nonvoter promoted to voter", "uuid", s.ID, "peer_addr", s.Address)
}

// lockMembers waits until no other change of the membership is under way here,
// so that what the caller then looks at still holds for its own change. Raft
// could compare the configuration's index instead, but raft 1.7.3 does not tell
// it: GetConfiguration's is always 0. Errors: ctx's cause.
func (n *Node) lockMembers(ctx context.Context) (unlock func(), err error) {
	select {
	case n.changing <- struct{}{}:
		return func() { <-n.changing }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// change makes a change of the membership, which the caller has locked, and waits
// for it. ctx ends the wait once Raft has taken the change or refused it; a change
// that still waited for Raft when the lock is gone would be made after those that
// are decided later. Errors: *nodes.MembershipRefused, nodes.ErrNotLeader,
// nodes.ErrOverloaded (nothing was changed); nodes.ErrOutcomeUnknown.
func (n *Node) change(ctx context.Context, begin func() raft.IndexFuture) error {
	ctx, cancel := context.WithTimeout(ctx, membershipTimeout)
	defer cancel()
	taken := make(chan raft.IndexFuture, 1)
	go func() { taken <- begin() }()
	var future raft.IndexFuture
	select {
	case future = <-taken:
	case <-n.ctx.Done():
		// Raft runs on for a moment, and may take it.
		return fmt.Errorf("%w: %w", nodes.ErrOutcomeUnknown, errNodeClosed)
	}
	changed := make(chan error, 1)
	go func() { changed <- changeError(future) }()
	select {
	case err := <-changed:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", nodes.ErrOutcomeUnknown, context.Cause(ctx))
	}
}

// changeError waits for a change, and turns Raft's error into one of change's. What
// has no index was never written to the log.
func changeError(change raft.IndexFuture) error {
	err := change.Error()
	switch {
	case err == nil:
		return nil
	case change.Index() != 0:
		return fmt.Errorf("%w: %w", nodes.ErrOutcomeUnknown, err)
	case errors.Is(err, raft.ErrEnqueueTimeout):
		return fmt.Errorf("%w: another change of the membership is under way: %w", nodes.ErrOverloaded, err)
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipLost),
		errors.Is(err, raft.ErrLeadershipTransferInProgress), errors.Is(err, raft.ErrRaftShutdown):
		return fmt.Errorf("%w: %w", nodes.ErrNotLeader, err)
	}
	return &nodes.MembershipRefused{
		Reason: fmt.Sprintf("Raft takes no such configuration: %v", err),
		Advice: "Nothing was changed; see with `claimq cluster status` who the members are, and by which addresses",
	}
}

// admitJoin makes the node that asks a nonvoter, if it shows a join token; it is
// promoted once it has caught up. A repeat for a member succeeds.
func (n *Node) admitJoin(ctx context.Context, req joining.Request) (clusterID string, err error) {
	l := n.leader.Load()
	if l == nil || !l.serves() {
		return "", errors.New("this node does not lead")
	}
	unlock, err := n.lockMembers(ctx)
	if err != nil {
		return "", err
	}
	// Until its record is written: another node may ask for the same name.
	defer unlock()
	record := req.NodeRecord
	members, level := n.memberRecords(record)
	if err := joining.Check(record, members, level); err != nil {
		return "", err
	}
	record.Nonvoter = false // its own word does not count
	for _, m := range members {
		if m.UUID == record.UUID {
			return n.dir.Identity().ClusterID, nil
		}
	}
	if err := n.mayJoin(ctx, record, req.Token); err != nil {
		return "", err
	}
	if err := n.admitLocked(ctx, l, record); err != nil {
		return "", err
	}
	return n.dir.Identity().ClusterID, nil
}
