package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/clocks"
	"github.com/claimq/claimq/cluster/lease"
	"github.com/claimq/claimq/cluster/peer"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/internal/pause"
)

// callHint is the call by which a leader tells the other voters its U: lease.Hint → {}.
const callHint = "hint"

// hintTimeout bounds sending a hint to one node, which gets no other until then.
const hintTimeout = time.Second

// leaseClocks starts a leader's clocks from what the voters know, and keeps them right.
type leaseClocks struct{ *statuses }

// start starts the leadership's clocks after the barrier, from the state, the hints
// of U that the voters have received, and their wall clocks. It continues once a majority
// of voters has answered, or after statusTimeout. In the latter case U may continue from
// slightly earlier, and T goes by monotonic time until agree has heard a majority.
func (lc *leaseClocks) start(l *leadership, voters []raft.ServerID, others []raft.Server) {
	hints := []lease.Hint{lc.hints.Latest()}
	heard := len(voters) - len(others)
	lc.eachStatus(l.ctx, others, statusQuestion{}, func(i int, status peerStatus, err error) bool {
		if err == nil {
			hints = append(hints, status.Hint)
			l.noteWall(others[i].ID, &status)
			heard++
		}
		return heard <= len(voters)/2
	})
	var start fsm.Stamp
	index := lc.fsm.Read(func(m *fsm.Machine) { start = m.Stamp() })
	start.U = lease.StartU(start, lc.termOf(index), l.term, hints...)
	l.clock = lease.NewClock(lc.clock, start)
	lc.followWalls(l)
}

// termOf returns the term of the log entry at index, 0 if it is not in the log.
func (lc *leaseClocks) termOf(index uint64) uint64 {
	if lc.logs == nil || index == 0 {
		return 0
	}
	var entry raft.Log
	if err := lc.logs.GetLog(index, &entry); err != nil {
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
func (lc *leaseClocks) followWalls(l *leadership) {
	now := lc.clock.Mono()
	l.wallClocks.NoteOwn(raft.ServerID(lc.uuid), clocks.Read(lc.cfg.NodeID, lc.clock.Wall(), now, 0))
	voters, _ := lc.clockVoters()
	majority, ok := l.wallClocks.Majority(now, voters)
	l.clock.SetMajority(majority, ok)
	if own, ok := l.clock.Ahead(); ok {
		l.wallClocks.Judge(majority, own)
	}
}

// runHints sends hints of U to the other voters until the scope ends.
func (lc *leaseClocks) runHints(l *leadership) {
	t := &hintTeller{
		clock: lc.clock, own: &lc.hints, due: func() (lease.Hint, bool) { return lc.hint(l) }, start: l.start, logger: lc.logger,
		others: func() []raft.Server {
			_, others := lc.clockVoters()
			return others
		},
		tell: func(ctx context.Context, addr string, hint lease.Hint) error {
			_, err := ask[struct{}](ctx, lc.core, addr, callHint, hint)
			return err
		},
	}
	t.run(l.ctx)
}

// hint returns U now, and whether it should be sent.
func (lc *leaseClocks) hint(l *leadership) (hint lease.Hint, due bool) {
	l.read(func(m *fsm.Machine) {
		now := l.clock.Now()
		hint = lease.Hint{Term: l.term, U: now.U}
		due = lease.HintDue(now, m.Stamp(), m.ClaimCount()+m.FinalizationCount())
	})
	return hint, due
}

// hintTeller sends a leader's U to the other voters.
type hintTeller struct {
	clock ClockSource
	own   *lease.Hints
	// due returns U now, and whether it should be sent.
	due    func() (hint lease.Hint, due bool)
	others func() []raft.Server // voters
	tell   func(ctx context.Context, addr string, hint lease.Hint) error
	start  func(func()) // runs in the leadership's scope
	logger hclog.Logger
}

// run sends U to the other voters while claims are live and no entry reports it, until ctx
// ends. After the process stood still, workers' extends go first, as in watchLeases,
// because a successor would not wait for them.
func (t *hintTeller) run(ctx context.Context) {
	telling := make(map[raft.ServerID]chan struct{}) // holds an element while the node is being told
	for {
		begun := t.clock.Mono()
		if !pause.For(ctx, pause.Beat(lease.HintInterval)) {
			return
		}
		if lease.Late(t.clock.Mono()-begun, lease.HintInterval) && !pause.For(ctx, lease.LatePause) {
			return
		}
		hint, due := t.due()
		if !due {
			continue
		}
		t.own.Note(hint)
		for _, s := range t.others() {
			busy := telling[s.ID]
			if busy == nil {
				busy = make(chan struct{}, 1)
				telling[s.ID] = busy
			}
			select {
			case busy <- struct{}{}:
				t.start(func() {
					t.tellOne(ctx, string(s.Address), hint)
					<-busy
				})
			default: // it has not answered the last one
			}
		}
	}
}

// tellOne sends the hint to one node. An error only matters for the log, because another
// hint follows soon.
func (t *hintTeller) tellOne(ctx context.Context, addr string, hint lease.Hint) {
	ctx, cancel := context.WithTimeout(ctx, hintTimeout)
	defer cancel()
	if err := t.tell(ctx, addr, hint); err != nil {
		t.logger.Debug("the lease clock was not told", "peer_addr", addr, "error", err)
	}
}

// answerHint accepts the leader's hint, unless a newer term has begun here: that leader's U
// then counts time in which workers could not extend.
func (lc *leaseClocks) answerHint(_ context.Context, body []byte) ([]byte, error) {
	hint, err := peer.ReadQuestion[lease.Hint](body)
	if err != nil {
		return nil, err
	}
	if term := lc.currentTerm(); hint.Term < term {
		return nil, fmt.Errorf("the hint is of term %d, this node is in term %d", hint.Term, term)
	}
	lc.hints.Note(hint)
	return []byte("{}"), nil
}
