package cluster

import (
	"sync"

	"github.com/hashicorp/raft"
)

// heartbeats is the gate through which heartbeats reach Raft. Raft handles them
// on the transport's goroutines, and its shutdown does not wait for one that is
// under way: that one may still write the term, and panics if the store is closed
// by then.
type heartbeats struct {
	mu     sync.RWMutex // held for reading while a heartbeat is handled
	closed bool         // guarded by mu
}

// through returns handle for heartbeats while the gate is open; later ones are
// dropped, as Raft itself drops what comes after its shutdown.
func (h *heartbeats) through(handle func(raft.RPC)) func(raft.RPC) {
	return func(rpc raft.RPC) {
		h.mu.RLock()
		defer h.mu.RUnlock()
		if !h.closed {
			handle(rpc)
		}
	}
}

// close closes the gate, and waits for the heartbeats that are under way.
func (h *heartbeats) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
}
