package peer

import (
	"maps"
	"sync"
)

// whereaboutsMax bounds the nodes whose addresses are kept in addition to the
// configuration's.
const whereaboutsMax = 1024

// Whereabouts are the peer addresses that other members reported when they opened a
// connection, by UUID. The configuration may have older ones, for nodes that have moved,
// until a leader has updated it. If most nodes have moved at the same time, there is no
// leader to do that before Raft's connections use these. The handshake proves that the
// dialed process is that node. It is kept in memory only and is safe for concurrent use.
type Whereabouts struct {
	mu    sync.Mutex
	addrs map[string]string // guarded by mu
}

// met records a node's address.
func (w *Whereabouts) met(uuid, addr string) {
	if uuid == "" || addr == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.addrs == nil || len(w.addrs) >= whereaboutsMax {
		w.addrs = make(map[string]string)
	}
	w.addrs[uuid] = addr
}

// At returns the UUID of the node at an address, or "".
func (w *Whereabouts) At(addr string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for uuid, at := range w.addrs {
		if at == addr {
			return uuid
		}
	}
	return ""
}

// Heard records a node's address as reported by another node, unless it has reported it
// itself.
func (w *Whereabouts) Heard(uuid, addr string) {
	if w.Of(uuid) == "" {
		w.met(uuid, addr)
	}
}

// All returns the nodes' addresses by UUID.
func (w *Whereabouts) All() map[string]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.addrs)
}

// Of returns the address that a node has reported, or "".
func (w *Whereabouts) Of(uuid string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.addrs[uuid]
}
