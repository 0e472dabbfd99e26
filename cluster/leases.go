package cluster

import (
	"sync"
	"time"

	"github.com/claimq/claimq/fsm"
)

const (
	// expireItemsMax bounds an Expire, and with it the work of an entry.
	expireItemsMax = 1024
	// leaseMarginPart is the part of a lease that it lasts longer, so that a
	// worker's clock may run slower than the leader's by 0.05 %; and
	// leaseMarginMS rounds up.
	leaseMarginPart = 2000
	leaseMarginMS   = 1
	// latePause is how late the timers may find themselves before they wait
	// that long for the extends that piled up meanwhile.
	latePause = time.Second
	// timersIdle is how long the timers sleep when nothing is claimed.
	timersIdle = time.Minute
	// timersSlack is how many timers of ended claims are left alone before the
	// heap is swept of them.
	timersSlack = 16_384
)

// leaseTimer is when to look at a claim's lease. The lease itself is in the
// state: an extend does not touch the timers.
type leaseTimer struct {
	due    int64 // by U, in milliseconds
	taskID uint64
	token  uint64
}

// leaseTimers is a heap of timers, the earliest first. A timer that comes too
// early, because the claim was extended, is pushed back; one whose claim has
// ended is dropped.
type leaseTimers struct {
	wake chan struct{} // capacity 1: the earliest timer has changed

	mu   sync.Mutex
	heap []leaseTimer // guarded by mu
}

func newLeaseTimers() *leaseTimers {
	return &leaseTimers{wake: make(chan struct{}, 1)}
}

// add starts timers for claims that have begun. It is called under the state's
// lock, so it is quick.
func (t *leaseTimers) add(leases []fsm.Lease) {
	t.mu.Lock()
	first := int64(-1)
	if len(t.heap) > 0 {
		first = t.heap[0].due
	}
	for _, l := range leases {
		t.pushLocked(leaseTimer{due: l.EndU, taskID: l.TaskID, token: l.Token})
	}
	changed := len(t.heap) > 0 && t.heap[0].due != first
	t.mu.Unlock()
	if changed {
		select {
		case t.wake <- struct{}{}:
		default:
		}
	}
}

// next returns when the earliest timer is due, ok false if there is none.
func (t *leaseTimers) next() (due int64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.heap) == 0 {
		return 0, false
	}
	return t.heap[0].due, true
}

// pop takes up to limit timers that are due at now.
func (t *leaseTimers) pop(now int64, limit int) []leaseTimer {
	t.mu.Lock()
	defer t.mu.Unlock()
	var due []leaseTimer
	for len(due) < limit && len(t.heap) > 0 && t.heap[0].due <= now {
		due = append(due, t.popLocked())
	}
	return due
}

// push puts timers back.
func (t *leaseTimers) push(timers []leaseTimer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, timer := range timers {
		t.pushLocked(timer)
	}
}

func (t *leaseTimers) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.heap)
}

func (t *leaseTimers) pushLocked(timer leaseTimer) {
	h := append(t.heap, timer)
	i := len(h) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if h[parent].due <= h[i].due {
			break
		}
		h[parent], h[i] = h[i], h[parent]
		i = parent
	}
	t.heap = h
}

func (t *leaseTimers) popLocked() leaseTimer {
	h := t.heap
	top := h[0]
	last := len(h) - 1
	h[0] = h[last]
	h = h[:last]
	i := 0
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1].due < h[child].due {
			child++
		}
		if h[i].due <= h[child].due {
			break
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
	t.heap = h
	return top
}

// sweep drops the timers that keep does not want.
func (t *leaseTimers) sweep(keep func([]leaseTimer) []leaseTimer) {
	t.mu.Lock()
	all := t.heap
	t.heap = nil
	t.mu.Unlock()
	t.push(keep(all))
}

// runTimers expires claims whose lease has run out, until the scope ends. It
// sleeps until the earliest timer; if it wakes much too late, the process or
// the machine stood still, and workers' extends are still waiting to be read:
// then it lets them go first.
func (l *leadership) runTimers() {
	timer := time.NewTimer(timersIdle)
	defer timer.Stop()
	for {
		wait := timersIdle
		if due, ok := l.timers.next(); ok {
			wait = time.Duration(max(due-l.clock.now().U, 0)) * time.Millisecond
		}
		timer.Reset(wait)
		begun := l.node.clock.Mono()
		select {
		case <-l.ctx.Done():
			return
		case <-l.timers.wake:
			continue
		case <-timer.C:
		}
		late := l.node.clock.Mono()-begun-wait > latePause
		if late && !pause(l.ctx, latePause) {
			return
		}
		l.expireDue()
		l.sweepTimers()
	}
}

// expireDue proposes the expiry of what is due. What cannot be proposed is
// tried again from the state.
func (l *leadership) expireDue() {
	for l.ctx.Err() == nil {
		now := l.clock.now().U
		timers := l.timers.pop(now, expireItemsMax)
		if len(timers) == 0 {
			return
		}
		items, kept := l.sortOut(timers, now)
		l.timers.push(kept)
		if len(items) == 0 {
			continue
		}
		begun := l.node.clock.Mono()
		p, err := l.node.batcher.propose(l.ctx, fsm.Expire{Items: items})
		if p.Result.Expired < len(items) {
			// It was not written, or an extend was in the log before it: then
			// the claim goes on, and nothing else would look at it again.
			l.timers.add(items)
		}
		if err == nil {
			if l.node.clock.Mono()-begun > latePause && !pause(l.ctx, latePause) {
				return
			}
			continue
		}
		if l.ctx.Err() == nil {
			l.node.logger.Warn("expiry not written, trying again", "claims", len(items), "error", err)
		}
		if !pause(l.ctx, dutyRetryInterval) {
			return
		}
	}
}

// sortOut looks the timers' leases up: items have run out, kept have not, the
// rest belong to claims that have ended.
func (l *leadership) sortOut(timers []leaseTimer, now int64) (items []fsm.Lease, kept []leaseTimer) {
	l.node.fsm.read(func(m *fsm.Machine) {
		for _, t := range timers {
			lease, ok := m.Lease(t.taskID)
			if !ok || lease.Token != t.token {
				continue
			}
			due := lease.EndU + leaseMarginMS
			if task := m.Get(t.taskID); task != nil {
				due += task.ClaimLeaseMS / leaseMarginPart
			}
			if due > now {
				kept = append(kept, leaseTimer{due: due, taskID: t.taskID, token: t.token})
				continue
			}
			items = append(items, lease)
		}
	})
	return items, kept
}

// sweepTimers bounds the heap: claims that ended long before their lease would
// have leave their timers behind.
func (l *leadership) sweepTimers() {
	if l.timers.len() < 2*int(l.node.fsm.claims.Load())+timersSlack {
		return
	}
	l.timers.sweep(func(all []leaseTimer) []leaseTimer {
		live := all[:0]
		// In parts, so that entries are applied in between.
		for len(all) > 0 {
			part := all[:min(len(all), 4096)]
			all = all[len(part):]
			l.node.fsm.read(func(m *fsm.Machine) {
				for _, t := range part {
					if lease, ok := m.Lease(t.taskID); ok && lease.Token == t.token {
						live = append(live, t)
					}
				}
			})
		}
		return live
	})
}
