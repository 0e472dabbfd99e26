package cluster

import (
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/replica"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/pause"
)

const (
	// memberInterval is the interval at which the leader checks the members.
	memberInterval = time.Second
	// memberAskInterval is the interval at which it asks them for their status.
	memberAskInterval = 5 * time.Second
	// promoteLagMax bounds the entries that a nonvoter may be behind to become a voter, and
	// promoteChecks is the number of checks in a row for which that must hold, because a
	// voter that lags would delay commits when another fails.
	promoteLagMax = 64
	promoteChecks = 3
)

// memberChecks checks the members for a leader: it keeps their records and addresses right,
// compares what they have applied, and promotes nonvoters that have caught up.
type memberChecks struct {
	*agreement
	membership *membership
	joins      *joins
	standing   *standing
	clocks     *leaseClocks
}

// lastCheck keeps what a leader has to remember between two checks of the members. Only the
// goroutine of memberChecks.run uses it.
type lastCheck struct {
	near map[raft.ServerID]int // checks in a row at which a nonvoter could have been promoted
	// at is where chains are compared: the point that was applied here at the last check,
	// so that live members have applied it, too.
	at replica.ChainPoint
}

// run keeps the node records correct, compares what the members have applied, and
// promotes nonvoters, until the scope ends.
func (mc *memberChecks) run(l *leadership) {
	last := &lastCheck{near: make(map[raft.ServerID]int), at: mc.fsm.NewestChain()}
	asked := time.Duration(-1)
	for {
		now := mc.clock.Mono()
		ask := asked < 0 || now-asked >= mc.cfg.interval(memberAskInterval)
		if ask {
			asked = now
		}
		newest := mc.fsm.NewestChain()
		mc.checkMembers(l, last, ask)
		last.at = newest
		if !pause.For(l.ctx, pause.Beat(mc.cfg.interval(memberInterval))) {
			return
		}
	}
}

// checkMembers asks all other members for their status, or only those without a vote,
// and acts on the answers.
func (mc *memberChecks) checkMembers(l *leadership, last *lastCheck, askAll bool) {
	mc.membership.record(l, mc.record)
	var asked []raft.Server
	for _, s := range mc.servers() {
		switch {
		case string(s.ID) == mc.uuid:
			mc.standing.move(l, s, mc.record.PeerAddr)
		case askAll || s.Suffrage != raft.Voter:
			asked = append(asked, s)
		}
	}
	statuses, errs := mc.askStatuses(l.ctx, asked, statusQuestion{ChainAt: last.at.Index})
	if l.ctx.Err() != nil {
		return
	}
	if askAll {
		chains := mc.compareAt(last.at)
		for i, s := range asked {
			chains.note(string(s.ID), statuses[i].Chain)
		}
		mc.judge(l, chains)
	}
	for i, s := range asked {
		if errs[i] != nil {
			last.near[s.ID] = 0
			if s.Suffrage != raft.Voter {
				mc.joins.tellAdmitted(l.ctx, string(s.ID), string(s.Address))
			}
			continue
		}
		mc.checkMember(l, s, &statuses[i], last)
	}
	mc.clocks.followWalls(l)
	mc.forgetStrangers(l)
}

// checkMember acts on a member's status. A nonvoter that should get a vote gets it after
// promoteChecks checks in a row at which it was near the end of the log and had applied the
// same as this node.
func (mc *memberChecks) checkMember(l *leadership, s raft.Server, status *peerStatus, last *lastCheck) {
	l.noteWall(s.ID, status)
	mc.membership.record(l, status.Record)
	mc.standing.move(l, s, status.Record.PeerAddr)
	if s.Suffrage == raft.Voter || mc.keptNonvoter(l, s) {
		return
	}
	behind := status.AppliedIndex+promoteLagMax < mc.raft.CommitIndex()
	l.laggards.note(s.ID, behind, mc.clock.Mono())
	if behind || status.Chain != last.at.String() {
		last.near[s.ID] = 0
		return
	}
	if last.near[s.ID]++; last.near[s.ID] >= promoteChecks {
		mc.promote(l, s)
	}
}

func (mc *memberChecks) promote(l *leadership, s raft.Server) {
	unlock, err := mc.membership.lockMembers(l.ctx)
	if err != nil {
		return // the next check follows
	}
	defer unlock()
	// It may have been removed in the meantime; Raft would add it again.
	if !slices.Contains(mc.servers(), s) || mc.keptNonvoter(l, s) {
		return
	}
	err = mc.membership.change(l.ctx, func() raft.IndexFuture {
		return mc.raft.AddVoter(s.ID, s.Address, 0, changeQueueMax)
	})
	if err != nil {
		mc.logger.Warn("nonvoter not promoted, trying again", "uuid", s.ID, "error", err)
		return
	}
	mc.logger.Info("nonvoter promoted to voter", "uuid", s.ID, "peer_addr", s.Address)
}

// keptNonvoter reports whether an operator wants the node to have no vote, or this is
// unknown because its record is missing.
func (mc *memberChecks) keptNonvoter(l *leadership, s raft.Server) bool {
	record, ok := fsm.NodeRecord{}, false
	mc.fsm.Read(func(m *fsm.Machine) { record, ok = m.Node(string(s.ID)) })
	return !ok || record.Nonvoter
}

// forgetStrangers removes the records of nodes that are no longer members. It reads the
// records before the members, because a node becomes a member before it has a record, or
// else under the lock.
func (mc *memberChecks) forgetStrangers(l *leadership) {
	var records []fsm.NodeRecord
	mc.fsm.Read(func(m *fsm.Machine) { records = m.Nodes() })
	if !mc.strangerAmong(l, records) {
		return
	}
	unlock, err := mc.membership.lockMembers(l.ctx)
	if err != nil {
		return
	}
	defer unlock()
	members := mc.memberUUIDs(l)
	for _, r := range records {
		if !members[r.UUID] {
			_ = l.propose(command.RemoveNode{UUID: r.UUID}) // retried at the next check
		}
	}
}

func (mc *memberChecks) strangerAmong(l *leadership, records []fsm.NodeRecord) bool {
	members := mc.memberUUIDs(l)
	return slices.ContainsFunc(records, func(r fsm.NodeRecord) bool { return !members[r.UUID] })
}

func (mc *memberChecks) memberUUIDs(l *leadership) map[string]bool {
	members := map[string]bool{mc.uuid: true}
	for _, s := range mc.servers() {
		members[string(s.ID)] = true
	}
	return members
}
