package cluster

import (
	"context"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/clocks"
	"github.com/claimq/claimq/cluster/lease"
	"github.com/claimq/claimq/fsm"
)

// ClockSource provides a node's time. Tests inject their own.
type ClockSource = lease.ClockSource

// startClocks starts the leadership's clocks after the barrier, from the state, the hints
// of U that the voters have received, and their wall clocks. It continues once a majority
// of voters has answered, or after statusTimeout. In the latter case U may continue from
// slightly earlier, and T goes by monotonic time alone.
func (l *leadership) startClocks(voters []raft.ServerID, others []raft.Server) {
	n := l.node
	hints := []lease.Hint{n.hints.get()}
	heard := len(voters) - len(others)
	n.eachStatus(l.ctx, others, statusQuestion{}, func(i int, status peerStatus, err error) bool {
		if err == nil {
			hints = append(hints, status.Hint)
			l.noteWall(others[i].ID, &status)
			heard++
		}
		return heard <= len(voters)/2
	})
	var start fsm.Stamp
	index := n.fsm.Read(func(m *fsm.Machine) { start = m.Stamp() })
	start.U = lease.StartU(start, n.termOf(index), l.term, hints...)
	l.clock = lease.NewClock(n.clock, start)
	l.followWalls()
}

// termOf returns the term of the log entry at index, 0 if it is not in the log.
func (n *Node) termOf(index uint64) uint64 {
	if n.logs == nil || index == 0 {
		return 0
	}
	var entry raft.Log
	if err := n.logs.GetLog(index, &entry); err != nil {
		return 0
	}
	return entry.Term
}

// noteWall records a member's wall clock from its status.
func (l *leadership) noteWall(id raft.ServerID, status *peerStatus) {
	if status.WallNS != 0 {
		l.wallClocks.Note(id, status.wall)
	}
}

// followWalls passes the majority of the voters' wall clocks to the leadership's clock.
func (l *leadership) followWalls() {
	n := l.node
	now := n.clock.Mono()
	l.wallClocks.NoteOwn(raft.ServerID(n.uuid), clocks.Read(n.cfg.NodeID, n.clock.Wall(), now, 0))
	voters, _ := n.clockVoters()
	majority, ok := l.wallClocks.Majority(now, voters)
	l.clock.SetMajority(majority, ok)
	if own, ok := l.clock.Ahead(); ok {
		l.wallClocks.Judge(majority, own)
	}
}

// clockVoters returns all voters, and separately the other ones. Without Raft this node is
// the only voter.
func (n *Node) clockVoters() (ids []raft.ServerID, others []raft.Server) {
	if n.raft == nil {
		return []raft.ServerID{raft.ServerID(n.uuid)}, nil
	}
	for _, s := range n.servers() {
		if s.Suffrage != raft.Voter {
			continue
		}
		ids = append(ids, s.ID)
		if string(s.ID) != n.uuid {
			others = append(others, s)
		}
	}
	return ids, others
}

// runHints sends hints of U to the other voters until the scope ends.
func (l *leadership) runHints() {
	n := l.node
	t := &hintTeller{
		clock: n.clock, own: &n.hints, due: l.hint, start: l.start, logger: n.logger,
		others: func() []raft.Server {
			_, others := n.clockVoters()
			return others
		},
		tell: func(ctx context.Context, addr string, hint lease.Hint) error {
			_, err := ask[struct{}](ctx, n, addr, callHint, hint)
			return err
		},
	}
	t.run(l.ctx)
}

// hint returns U now, and whether it should be sent.
func (l *leadership) hint() (hint lease.Hint, due bool) {
	l.read(func(m *fsm.Machine) {
		now := l.clock.Now()
		hint = lease.Hint{Term: l.term, U: now.U}
		due = lease.HintDue(now, m.Stamp(), m.ClaimCount()+m.FinalizationCount())
	})
	return hint, due
}
