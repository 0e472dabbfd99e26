package confirm

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// comebackLook is the interval at which a held call checks whether it is still needed.
const comebackLook = time.Second

// comebacks let entries flow to a peer when it returns.
//
// Raft waits longer after each failed call with entries or a snapshot, up to ten seconds,
// although heartbeats go on four times a second. So a follower that was away for half a
// minute is heard of at once but sent nothing for ten seconds; if another node fails
// meanwhile, there is a leader that cannot commit. Therefore the error of such a call is
// held back until the peer has answered a heartbeat again. Entries are then sent once more;
// for a snapshot, Raft counts one failure and retries after its shortest wait.
type comebacks struct {
	// leads reports whether this node still leads in term and the peer is a member. If nil,
	// no call is held back.
	leads func(term uint64, id raft.ServerID) bool
	// done ends every wait.
	done <-chan struct{}

	mu      sync.Mutex
	waiting map[raft.ServerID]chan struct{} // guarded by mu; closed when the peer answers
}

// heard records that a peer answered a heartbeat.
func (c *comebacks) heard(id raft.ServerID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if answered, ok := c.waiting[id]; ok {
		close(answered)
		delete(c.waiting, id)
	}
}

// wait waits until the peer answers a heartbeat. It returns false if the call is no longer
// needed.
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

// IsHeartbeat reports whether a call is one of Raft's heartbeats, by the same criteria as
// Raft's own transport.
func IsHeartbeat(args *raft.AppendEntriesRequest) bool {
	return args.PrevLogEntry == 0 && args.PrevLogTerm == 0 && len(args.Entries) == 0 && args.LeaderCommitIndex == 0
}
