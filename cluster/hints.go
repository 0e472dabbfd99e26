package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/lease"
	"github.com/claimq/claimq/cluster/peer"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/internal/pause"
)

// hintTimeout bounds telling one node; until it answers it is told nothing else.
const hintTimeout = time.Second

// hints holds the latest hint of a leader's U that this node was told, or gave
// itself. It is in memory alone. The zero value is ready.
type hints struct {
	mu     sync.Mutex
	latest lease.Hint // guarded by mu
}

func (h *hints) note(hint lease.Hint) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.latest = h.latest.Later(hint)
}

// get returns the latest hint, the zero Hint if there was none.
func (h *hints) get() lease.Hint {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.latest
}

// answerHint takes the leader's hint, unless a newer term has begun here: then it
// counts time in which nobody could extend.
func (n *Node) answerHint(_ context.Context, body []byte) ([]byte, error) {
	hint, err := peer.ReadQuestion[lease.Hint](body)
	if err != nil {
		return nil, err
	}
	if term := n.currentTerm(); hint.Term < term {
		return nil, fmt.Errorf("the hint is of term %d, this node is in term %d", hint.Term, term)
	}
	n.hints.note(hint)
	return []byte("{}"), nil
}

// runHints tells the other voters U while claims live and no entry tells it,
// until the scope ends. After the process stood still workers' extends go first, as in
// runTimers: a successor would else not wait for them.
func (l *leadership) runHints() {
	n := l.node
	telling := make(map[raft.ServerID]chan struct{}) // holds an element while the node is being told
	for {
		begun := n.clock.Mono()
		if !pause.For(l.ctx, lease.HintInterval) {
			return
		}
		if lease.Late(n.clock.Mono()-begun, lease.HintInterval) && !pause.For(l.ctx, lease.LatePause) {
			return
		}
		hint, due := l.hint()
		if !due {
			continue
		}
		n.hints.note(hint)
		for _, s := range n.servers() {
			if s.Suffrage != raft.Voter || string(s.ID) == n.uuid {
				continue
			}
			busy := telling[s.ID]
			if busy == nil {
				busy = make(chan struct{}, 1)
				telling[s.ID] = busy
			}
			select {
			case busy <- struct{}{}:
				l.start(func() {
					l.tellHint(string(s.Address), hint)
					<-busy
				})
			default: // it has not answered the last one
			}
		}
	}
}

// hint returns U now, and whether it is to be told.
func (l *leadership) hint() (hint lease.Hint, due bool) {
	l.read(func(m *fsm.Machine) {
		now := l.clock.Now()
		hint = lease.Hint{Term: l.term, U: now.U}
		due = lease.HintDue(now, m.Stamp(), m.ClaimCount()+m.FinalizationCount())
	})
	return hint, due
}

// tellHint tells one node. It is told again soon, so an error is nobody's concern.
func (l *leadership) tellHint(addr string, hint lease.Hint) {
	ctx, cancel := context.WithTimeout(l.ctx, hintTimeout)
	defer cancel()
	if _, err := ask[struct{}](ctx, l.node, addr, callHint, hint); err != nil {
		l.node.logger.Debug("the lease clock was not told", "peer_addr", addr, "error", err)
	}
}
