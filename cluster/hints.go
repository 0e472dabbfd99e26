package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/lease"
	"github.com/claimq/claimq/cluster/peer"
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

// answer takes the leader's hint, unless a newer term has begun here: then it
// counts time in which nobody could extend.
func (h *hints) answer(term uint64, body []byte) ([]byte, error) {
	hint, err := peer.ReadQuestion[lease.Hint](body)
	if err != nil {
		return nil, err
	}
	if hint.Term < term {
		return nil, fmt.Errorf("the hint is of term %d, this node is in term %d", hint.Term, term)
	}
	h.note(hint)
	return []byte("{}"), nil
}

// hintTeller tells the other voters a leader's U.
type hintTeller struct {
	clock ClockSource
	own   *hints
	// due returns U now, and whether it is to be told.
	due    func() (hint lease.Hint, due bool)
	others func() []raft.Server // voters
	tell   func(ctx context.Context, addr string, hint lease.Hint) error
	start  func(func()) // in the leadership's scope
	logger hclog.Logger
}

// run tells the other voters U while claims live and no entry tells it,
// until ctx ends. After the process stood still workers' extends go first, as in
// duty.RunLeases: a successor would else not wait for them.
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
		t.own.note(hint)
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

// tellOne tells one node. It is told again soon, so an error is nobody's concern.
func (t *hintTeller) tellOne(ctx context.Context, addr string, hint lease.Hint) {
	ctx, cancel := context.WithTimeout(ctx, hintTimeout)
	defer cancel()
	if err := t.tell(ctx, addr, hint); err != nil {
		t.logger.Debug("the lease clock was not told", "peer_addr", addr, "error", err)
	}
}
