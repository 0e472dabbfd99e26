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

// hintTimeout bounds sending a hint to one node, which gets no other until then.
const hintTimeout = time.Second

// hints holds the latest hint of a leader's U that this node received or sent. It is only
// in memory. The zero value is ready to use.
type hints struct {
	mu     sync.Mutex
	latest lease.Hint // guarded by mu
}

func (h *hints) note(hint lease.Hint) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.latest = h.latest.Later(hint)
}

// get returns the latest hint, or the zero Hint.
func (h *hints) get() lease.Hint {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.latest
}

// answer accepts the leader's hint, unless a newer term has begun here: that leader's U
// then counts time in which workers could not extend.
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

// hintTeller sends a leader's U to the other voters.
type hintTeller struct {
	clock ClockSource
	own   *hints
	// due returns U now, and whether it should be sent.
	due    func() (hint lease.Hint, due bool)
	others func() []raft.Server // voters
	tell   func(ctx context.Context, addr string, hint lease.Hint) error
	start  func(func()) // runs in the leadership's scope
	logger hclog.Logger
}

// run sends U to the other voters while claims are live and no entry reports it, until ctx
// ends. After the process stood still, workers' extends go first, as in duty.RunLeases,
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

// tellOne sends the hint to one node. An error only matters for the log, because another
// hint follows soon.
func (t *hintTeller) tellOne(ctx context.Context, addr string, hint lease.Hint) {
	ctx, cancel := context.WithTimeout(ctx, hintTimeout)
	defer cancel()
	if err := t.tell(ctx, addr, hint); err != nil {
		t.logger.Debug("the lease clock was not told", "peer_addr", addr, "error", err)
	}
}
