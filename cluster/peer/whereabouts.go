package peer

import (
	"maps"
	"sync"
)

// whereaboutsMax bounds the nodes whose addresses are kept beside the configuration's.
const whereaboutsMax = 1024

// Whereabouts are the peer addresses by which other members said that they are reached
// when they opened a connection, by UUID. The configuration may have others: of a node
// that has moved, until a leader has noted it. If most have moved at once nobody can
// lead, and note anything, before Raft's connections go to these. Who is dialed there
// proves by the handshake that it is that node. In memory only; safe for concurrent use.
type Whereabouts struct {
	mu    sync.Mutex
	addrs map[string]string // guarded by mu
}

// met notes where a node is.
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

// At returns the UUID of the node at an address, "" for none.
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

// Heard notes where a node is by the word of another one, unless it said so itself.
func (w *Whereabouts) Heard(uuid, addr string) {
	if w.Of(uuid) == "" {
		w.met(uuid, addr)
	}
}

// All returns where the nodes are, by UUID.
func (w *Whereabouts) All() map[string]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.addrs)
}

// Of returns where a node said that it is, "" if it has not.
func (w *Whereabouts) Of(uuid string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.addrs[uuid]
}
