package cluster

import (
	"context"
	"errors"
	"fmt"
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
		if string(s.ID) == n.uuid || !askAll && s.Suffrage == raft.Voter {
			continue
		}
		wall, at := n.clock.Wall(), n.clock.Mono()
		ctx, cancel := context.WithTimeout(l.ctx, memberAskTimeout)
		status, err := ask[peerStatus](ctx, n, string(s.Address), callStatus, struct{}{})
		cancel()
		if err != nil || status.Record.UUID != string(s.ID) {
			near[s.ID] = 0
			continue
		}
		if status.WallNS != 0 {
			l.wallClocks.note(status.Record.NodeID, status.WallNS, wall, at, n.clock.Mono()-at)
		}
		l.record(status.Record)
		if s.Suffrage == raft.Voter {
			continue
		}
		if status.AppliedIndex+promoteLagMax < n.raft.CommitIndex() {
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
	var have fsm.NodeRecord
	l.node.fsm.read(func(m *fsm.Machine) { have, _ = m.Node(r.UUID) })
	if have == r || r.NodeID == "" {
		return
	}
	if err := l.propose(fsm.SetNode{Node: r}); err != nil && l.ctx.Err() == nil {
		l.node.logger.Warn("node record not written, trying again", "node_id", r.NodeID, "error", err)
	}
}

// forgetStrangers removes the records of nodes that are no longer members. It
// looks at the records first: a node becomes a member before it has one.
func (l *leadership) forgetStrangers() {
	var records []fsm.NodeRecord
	l.node.fsm.read(func(m *fsm.Machine) { records = m.Nodes() })
	members := map[string]bool{l.node.uuid: true}
	for _, s := range l.node.servers() {
		members[string(s.ID)] = true
	}
	for _, r := range records {
		if !members[r.UUID] {
			_ = l.propose(fsm.RemoveNode{UUID: r.UUID}) // else at the next look
		}
	}
}

func (l *leadership) promote(s raft.Server) {
	n := l.node
	unlock, err := n.lockMembers(l.ctx)
	if err != nil {
		return // the next look comes
	}
	defer unlock()
	// It may have been removed while others were asked: Raft would add it anew.
	if !slices.Contains(n.servers(), s) {
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
	var members []fsm.NodeRecord
	var level uint32
	servers := n.servers()
	n.fsm.read(func(m *fsm.Machine) {
		level = m.Level()
		for _, s := range servers {
			r, ok := m.Node(string(s.ID))
			if !ok { // its record comes; until then its address is known
				r = fsm.NodeRecord{UUID: string(s.ID), PeerAddr: string(s.Address)}
				if r.UUID == record.UUID {
					r.NodeID = record.NodeID
				}
			}
			members = append(members, r)
		}
	})
	if err := checkJoin(record, members, level); err != nil {
		return "", err
	}
	for _, s := range servers {
		if string(s.ID) == record.UUID {
			return n.dir.Identity().ClusterID, nil
		}
	}
	err = n.change(ctx, func() raft.IndexFuture {
		return n.raft.AddNonvoter(raft.ServerID(record.UUID), raft.ServerAddress(record.PeerAddr), 0, membershipTimeout)
	})
	if err != nil {
		return "", fmt.Errorf("add node: %w", err)
	}
	l.record(record)
	return n.dir.Identity().ClusterID, nil
}
