package cluster

import (
	"context"
	"sync"
	"time"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/pause"
)

// Bounds for the cluster in a soak (docs/guarantees.md). A lease that has run out is
// noticed within a second; each change of leader may add half a second, and five more if
// nodes that knew the lease clock have been restarted.
const (
	soakLeaderMax   = 5 * time.Second
	soakProgressMax = 10 * time.Second
	soakLevelMax    = 30 * time.Second

	soakExpiryMax = time.Second
	// soakExpiryCutOff is the time for which a leader that is cut off does not know it. During
	// it there is no leader, which unwell cannot tell.
	soakExpiryCutOff    = leaderLeaseTimeout
	soakExpiryPerChange = 500 * time.Millisecond
	soakExpiryUnhinted  = 5 * time.Second
	soakHealthInterval  = 100 * time.Millisecond
	// soakSlowAfter is the time for which a slow disk or network still counts afterwards: a
	// leader that found itself late waits for the extends that piled up before it expires
	// claims.
	soakSlowAfter = 2 * time.Second
)

// soakMoment is a moment with the totals until then.
type soakMoment struct {
	at      time.Time
	unwell  time.Duration // time without a leader, or with a slow disk or network
	changes int           // of the leader
	starts  int           // of nodes
}

// soakHealth checks the cluster ten times a second: the leases, and how late they may be.
type soakHealth struct {
	c *soakCluster

	mu     sync.Mutex
	moment soakMoment // guarded by mu
	member *soakMember
	term   uint64
}

func (h *soakHealth) now() soakMoment {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.moment
}

// run checks until ctx ends.
func (h *soakHealth) run(ctx context.Context, l *soakLoad) {
	last := time.Now()
	var slowUntil time.Time
	for pause.For(ctx, soakHealthInterval) {
		m := h.c.leader()
		var term uint64
		if m != nil {
			if n := m.running(); n != nil {
				term = n.currentTerm()
			}
		}
		h.mu.Lock()
		now := time.Now()
		same := m != nil && m == h.member && term == h.term
		if m != nil && !same {
			h.moment.changes++
			h.member, h.term = m, term
		}
		if h.slow() {
			slowUntil = now.Add(soakSlowAfter)
		}
		if !same || now.Before(slowUntil) {
			h.moment.unwell += now.Sub(last)
		}
		h.moment.at, h.moment.starts, last = now, int(h.c.starts.Load()), now
		moment := h.moment
		h.mu.Unlock()
		if same {
			l.checkLate(m.running(), moment)
		}
	}
}

func (h *soakHealth) slow() bool {
	if h.c.rough.Load() {
		return true
	}
	for _, m := range h.c.members {
		if m.disk.slow.Load() > 0 || m.disk.waiting.Load() > 0 {
			return true
		}
		// Raft refuses every write during a transfer to a node that does not answer.
		if n := m.running(); n != nil && n.transfers.transferSince.Load() > 0 {
			return true
		}
	}
	return false
}

// checkLate looks for claims that outlive their lease on the leader.
func (l *soakLoad) checkLate(n *Node, now soakMoment) {
	if n == nil {
		return
	}
	var live []command.Lease
	n.fsm.Read(func(m *fsm.Machine) {
		for lease := range m.Leases() {
			live = append(live, lease)
		}
	})
	if l.c.hasCrashed(n) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, lease := range live {
		h := l.holds[lease.TaskID]
		if h == nil || h.token != lease.Token || h.ending || h.trying {
			continue
		}
		late := now.at.Sub(h.dueAt)
		changes := now.changes - h.begun.changes
		most := soakExpiryMax + soakExpiryCutOff + 2*soakHealthInterval + h.lease/1000 + (now.unwell - h.begun.unwell) +
			soakExpiryPerChange*time.Duration(changes) + soakExpiryUnhinted*time.Duration(min(changes, now.starts-h.begun.starts))
		if late > most {
			l.c.fail("task %d, token %d: its lease of %s ended %s ago and the claim is still live, at most %s is allowed", lease.TaskID, lease.Token, h.lease, late, most)
		}
	}
}

// soakWaitOnce waits until the condition is true and returns the time; ok is false if it
// took longer than most.
func (c *soakCluster) soakWaitOnce(most time.Duration, condition func() bool) (took time.Duration, ok bool) {
	start := time.Now()
	for !condition() {
		if time.Since(start) > most {
			return time.Since(start), false
		}
		<-time.After(10 * time.Millisecond)
	}
	return time.Since(start), true
}

// soakWait is soakWaitOnce, but starts over when a node that ended itself had to be started
// again.
func (c *soakCluster) soakWait(most time.Duration, condition func() bool) (took time.Duration, ok bool) {
	again := true
	for again {
		again = false
		took, ok = c.soakWaitOnce(most, func() bool {
			again = c.restartLooped() > 0
			return again || condition()
		})
	}
	return took, ok
}

// checkRecovery heals everything and checks how soon the cluster serves.
func (c *soakCluster) checkRecovery(l *soakLoad) {
	c.heal()
	start := time.Now()
	if took, ok := c.soakWait(soakLeaderMax, func() bool { return c.leader() != nil }); !ok {
		c.fail("no leader %s after healing", took)
	}
	elected := time.Since(start)
	took, ok := c.soakWait(soakProgressMax, func() bool {
		m := c.leader()
		if m == nil {
			return false
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		n := m.running()
		if n == nil {
			return false
		}
		p, err := n.Propose(ctx, command.Tick{})
		if err == nil {
			l.acknowledged(p.Index)
		}
		return err == nil
	})
	if !ok || time.Since(start) > soakProgressMax {
		c.fail("no progress %s after healing", time.Since(start))
	}
	c.log.event("a leader %s, progress %s after healing", elected, elected+took)
	c.promoteAll()
}

// checkSame checks that all nodes reach the same index with the same state.
func (c *soakCluster) checkSame() {
	var indexes []uint64
	var hashes [][16]byte
	took, ok := c.soakWait(soakLevelMax, func() bool {
		indexes, hashes = indexes[:0], hashes[:0]
		same := true
		for _, m := range c.members {
			if m.running() == nil {
				return false
			}
			index := m.running().AppliedIndex()
			indexes = append(indexes, index)
			same = same && index == indexes[0]
		}
		if !same {
			return false
		}
		for i, m := range c.members {
			index, hash := m.running().StateHash()
			if i > 0 && index != indexes[0] {
				return false
			}
			indexes[0] = index
			hashes = append(hashes, hash)
		}
		return true
	})
	if !ok {
		c.fail("the nodes are not level %s after the load: %d", took, indexes)
	}
	for i := range hashes {
		if hashes[i] != hashes[0] {
			c.fail("state hashes at index %d: n1 %x, n%d %x", indexes[0], hashes[0], i+1, hashes[i])
		}
	}
	c.log.event("all nodes are level at %d", indexes[0])
}

// checkAcknowledged checks that every node has everything that was acknowledged.
func (c *soakCluster) checkAcknowledged(l *soakLoad) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range c.members {
		n := m.running()
		for key, id := range l.keys {
			if t := stateOf(n, id); t == nil || t.Key != key {
				c.fail("%s: task %d, key %s, was acknowledged, and is %+v", m.name, id, key, t)
			}
		}
		for id, done := range l.completed {
			t := stateOf(n, id)
			if t == nil || t.Status != fsm.StatusCompleted || t.Token != done.token || string(t.Result) != done.result {
				c.fail("%s: task %d was completed: %+v, and is %+v", m.name, id, done, t)
			}
		}
	}
}
