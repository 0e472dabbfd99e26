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
	// memberInterval is the interval at which the leader checks the members.
	memberInterval = time.Second
	// memberAskInterval is the interval at which it asks them for their status.
	memberAskInterval = 5 * time.Second
	// membershipTimeout bounds one change of the membership; changeQueueMax is its part for
	// waiting until Raft has finished the previous change.
	membershipTimeout = 10 * time.Second
	changeQueueMax    = 5 * time.Second
	// promoteLagMax bounds the entries that a nonvoter may be behind to become a voter, and
	// promoteLooks is the number of checks in a row for which that must hold, because a
	// voter that lags would delay commits when another fails.
	promoteLagMax = 64
	promoteLooks  = 3
)

// memberLooks keeps what a leader has to remember between two checks of the members. Only
// runMembers uses it.
type memberLooks struct {
	near map[raft.ServerID]int // checks in a row at which a nonvoter could have been promoted
	// at is where chains are compared: the point that was applied here at the last check,
	// so that live members have applied it, too.
	at replica.ChainPoint
}

// runMembers keeps the node records correct, compares what the members have applied, and
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

// lookAfterMembers asks all other members for their status, or only those without a vote,
// and acts on the answers.
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

// lookAfter acts on a member's status. A nonvoter that should get a vote gets it after
// promoteLooks checks in a row at which it was near the end of the log and had applied the
// same as this node.
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

// record logs a node's record if the state has none or a different one.
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

// recorded reports whether the state has the record, ignoring the operator's wish.
func (l *leadership) recorded(r fsm.NodeRecord) bool {
	var have fsm.NodeRecord
	l.node.fsm.Read(func(m *fsm.Machine) { have, _ = m.Node(r.UUID) })
	r.Nonvoter = have.Nonvoter
	return have == r || r.NodeID == ""
}

// recordLocked is record for callers that have locked the membership. It keeps the
// operator's wish, which the node itself does not know.
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

// move updates a member's peer address.
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

// keptNonvoter reports whether an operator wants the node to have no vote, or this is
// unknown because its record is missing.
func (l *leadership) keptNonvoter(s raft.Server) bool {
	record, ok := fsm.NodeRecord{}, false
	l.node.fsm.Read(func(m *fsm.Machine) { record, ok = m.Node(string(s.ID)) })
	return !ok || record.Nonvoter
}

// forgetStrangers removes the records of nodes that are no longer members. It reads the
// records before the members, because a node becomes a member before it has a record, or
// else under the lock.
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
			_ = l.propose(command.RemoveNode{UUID: r.UUID}) // retried at the next check
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
		return // the next check follows
	}
	defer unlock()
	// It may have been removed in the meantime; Raft would add it again.
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

// lockMembers waits until no other change of the membership is under way here, so that what
// the caller reads then still holds for its own change. Raft could compare the
// configuration's index instead, but raft 1.7.3 does not reveal it: GetConfiguration's is
// always 0. Errors: ctx's cause.
func (n *Node) lockMembers(ctx context.Context) (unlock func(), err error) {
	select {
	case n.changing <- struct{}{}:
		return func() { <-n.changing }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// change makes a change of the membership, which the caller has locked, and waits for it.
// It does not return before Raft has accepted or refused the change, because a change that
// still waited for Raft after the lock is released would come after later decisions; only
// then does ctx end the wait. Errors after which nothing has changed:
// *nodes.MembershipRefused, nodes.ErrNotLeader, nodes.ErrOverloaded.
// nodes.ErrOutcomeUnknown if that is unknown.
func (n *Node) change(ctx context.Context, begin func() raft.IndexFuture) error {
	ctx, cancel := context.WithTimeout(ctx, membershipTimeout)
	defer cancel()
	taken := make(chan raft.IndexFuture, 1)
	go func() { taken <- begin() }()
	var future raft.IndexFuture
	select {
	case future = <-taken:
	case <-n.ctx.Done():
		// Raft goes on for a moment, and may accept it.
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

// changeError waits for a change and translates Raft's error for change. A change without
// an index was never written to the log.
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

// admitJoin makes the joining node a nonvoter if it presents a join token; it is promoted
// once it has caught up. Repeating it for a member succeeds.
func (n *Node) admitJoin(ctx context.Context, req joining.Request) (clusterID string, err error) {
	l := n.leader.Load()
	if l == nil || !l.serves() {
		return "", errors.New("this node does not lead")
	}
	unlock, err := n.lockMembers(ctx)
	if err != nil {
		return "", err
	}
	// Keep the lock until the record is written, because another node may ask for the same
	// name.
	defer unlock()
	record := req.NodeRecord
	members, level := n.memberRecords(record)
	if err := joining.Check(record, members, level); err != nil {
		return "", err
	}
	record.Nonvoter = false // a joining node cannot decide this
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
