package confirm

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// comebackLook is how often a call that is held back looks whether anybody
// still needs it.
const comebackLook = time.Second

// comebacks let entries flow to a peer as soon as it is back.
//
// Raft waits longer after each failed call that carries entries or a snapshot,
// up to ten seconds, while its heartbeats go on four times a second. So a
// follower that was away for half a minute is heard of at once and sent nothing
// for ten seconds; if the other one goes meanwhile, there is a leader that
// cannot commit. Therefore such a call's error is held back until the peer has
// answered a heartbeat again. Entries are then sent once more; a snapshot is not, and Raft
// counts one failure and tries again after its shortest wait.
type comebacks struct {
	// leads reports whether this node still leads in term, with the peer among
	// the members. nil = nothing is held back.
	leads func(term uint64, id raft.ServerID) bool
	// done ends every wait.
	done <-chan struct{}

	mu      sync.Mutex
	waiting map[raft.ServerID]chan struct{} // guarded by mu; closed when the peer answers
}

// heard notes that a peer answered a heartbeat.
func (c *comebacks) heard(id raft.ServerID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if answered, ok := c.waiting[id]; ok {
		close(answered)
		delete(c.waiting, id)
	}
}

// wait waits until the peer answers a heartbeat, and reports false when nobody needs the
// call any more.
func (c *comebacks) wait(id raft.ServerID, term uint64) bool {
	if c.leads == nil {
		return false
	}
	c.mu.Lock()
	answered, ok := c.waiting[id]
	if !ok {
		if c.waiting == nil {
			c.waiting = make(map[raft.ServerID]chan struct{})
		}
		answered = make(chan struct{})
		c.waiting[id] = answered
	}
	c.mu.Unlock()
	ticker := time.NewTicker(comebackLook)
	defer ticker.Stop()
	for {
		select {
		case <-answered:
			return true
		case <-c.done:
			return false
		case <-ticker.C:
			if !c.leads(term, id) {
				return false
			}
		}
	}
}

// IsHeartbeat reports whether a call is one of Raft's heartbeats, by what
// Raft's own transport goes by.
func IsHeartbeat(args *raft.AppendEntriesRequest) bool {
	return args.PrevLogEntry == 0 && args.PrevLogTerm == 0 && len(args.Entries) == 0 && args.LeaderCommitIndex == 0
}
