package cluster

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/fsm"
)

const (
	// memberInterval is how often the leader looks after the members.
	memberInterval = time.Second
	// memberAskInterval is how often it asks them who they are.
	memberAskInterval = 5 * time.Second
	memberAskTimeout  = time.Second
	// membershipTimeout bounds one change of the membership.
	membershipTimeout = 10 * time.Second
	// promoteLagMax is how far, in entries, a nonvoter may be behind to become
	// a voter, and promoteLooks how many looks in a row it must be that near: a
	// voter that lags would hold up commits when another fails.
	promoteLagMax = 64
	promoteLooks  = 3
)

// runMembers keeps the node records right and promotes nonvoters, until the
// scope ends.
func (l *leadership) runMembers() {
	near := make(map[raft.ServerID]int) // looks in a row that a nonvoter was near
	asked := time.Duration(-1)
	for {
		now := l.node.clock.Mono()
		ask := asked < 0 || now-asked >= memberAskInterval
		if ask {
			asked = now
		}
		l.lookAfterMembers(near, ask)
		if !pause(l.ctx, memberInterval) {
			return
		}
	}
}

func (l *leadership) lookAfterMembers(near map[raft.ServerID]int, askAll bool) {
	n := l.node
	l.record(n.record)
	for _, s := range n.servers() {
		if string(s.ID) == n.uuid {
			l.move(s, n.record.PeerAddr)
			continue
		}
		if !askAll && s.Suffrage == raft.Voter {
			continue
		}
		wall, at := n.clock.Wall(), n.clock.Mono()
		ctx, cancel := context.WithTimeout(l.ctx, memberAskTimeout)
		status, err := ask[peerStatus](ctx, n, string(s.Address), callStatus, struct{}{})
		cancel()
		if err != nil || status.Record.UUID != string(s.ID) {
			near[s.ID] = 0
			if s.Suffrage != raft.Voter {
				n.tellAdmitted(l.ctx, string(s.ID), string(s.Address))
			}
			continue
		}
		if status.WallNS != 0 {
			l.wallClocks.note(status.Record.NodeID, status.WallNS, wall, at, n.clock.Mono()-at)
		}
		l.record(status.Record)
		l.move(s, status.Record.PeerAddr)
		if s.Suffrage == raft.Voter || l.keptNonvoter(s) {
			continue
		}
		behind := status.AppliedIndex+promoteLagMax < n.raft.CommitIndex()
		l.noteCatching(s.ID, behind)
		if behind {
			near[s.ID] = 0
			continue
		}
		if near[s.ID]++; near[s.ID] >= promoteLooks {
			l.promote(s)
		}
	}
	l.wallClocks.judge(n.clock.Mono())
	l.forgetStrangers()
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
	l.node.fsm.read(func(m *fsm.Machine) { have, _ = m.Node(r.UUID) })
	r.Nonvoter = have.Nonvoter
	return have == r || r.NodeID == ""
}

// recordLocked is record for who has locked the membership: an operator's wish,
// which the node itself does not know, stays what it is.
func (l *leadership) recordLocked(r fsm.NodeRecord) {
	if l.recorded(r) {
		return
	}
	l.node.fsm.read(func(m *fsm.Machine) {
		if have, ok := m.Node(r.UUID); ok {
			r.Nonvoter = have.Nonvoter
		}
	})
	if err := l.propose(fsm.SetNode{Node: r}); err != nil && l.ctx.Err() == nil {
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
	l.node.fsm.read(func(m *fsm.Machine) { record, ok = m.Node(string(s.ID)) })
	return !ok || record.Nonvoter
}

// forgetStrangers removes the records of nodes that are no longer members. It
// looks at the records first: a node becomes a member before it has one, or else
// under the lock.
func (l *leadership) forgetStrangers() {
	var records []fsm.NodeRecord
	l.node.fsm.read(func(m *fsm.Machine) { records = m.Nodes() })
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
			_ = l.propose(fsm.RemoveNode{UUID: r.UUID}) // else at the next look
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
	// It may have been removed while others were asked: Raft would add it anew.
	if !slices.Contains(n.servers(), s) || l.keptNonvoter(s) {
		return
	}
	err = n.change(l.ctx, func() raft.IndexFuture {
		return n.raft.AddVoter(s.ID, s.Address, 0, membershipTimeout)
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

// change waits for a change of the membership. The caller has locked it.
func (n *Node) change(ctx context.Context, begin func() raft.IndexFuture) error {
	ctx, cancel := context.WithTimeout(ctx, membershipTimeout)
	defer cancel()
	return n.await(ctx, func() raft.Future { return begin() })
}

// admitJoin makes the node of record a nonvoter; it is promoted once it has
// caught up. A repeat for a member succeeds.
func (n *Node) admitJoin(ctx context.Context, record fsm.NodeRecord) (clusterID string, err error) {
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
	members, level := n.memberRecords(record)
	if err := checkJoin(record, members, level); err != nil {
		return "", err
	}
	record.Nonvoter = false // its own word does not count
	for _, m := range members {
		if m.UUID == record.UUID {
			return n.dir.Identity().ClusterID, nil
		}
	}
	if err := n.admitLocked(ctx, l, record); err != nil {
		return "", err
	}
	return n.dir.Identity().ClusterID, nil
}
