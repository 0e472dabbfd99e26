package lease

import (
	"sync"
	"time"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

const (
	// ItemsMax bounds the leases that Due returns, and with them an entry.
	ItemsMax = 1024
	// TasksMax bounds the tasks that the expiry of these leases may change, beyond
	// the first one's.
	TasksMax = 10_000
	// Idle is how long the timers sleep when nothing is claimed.
	Idle = time.Minute
	// LatePause is how late the timers may find themselves before they wait
	// that long for the extends that piled up meanwhile.
	LatePause = time.Second

	// marginPart is the part of a lease that it lasts longer, so that a worker's
	// clock may run slower than the leader's by 0.05 %. marginMS is for what is
	// cut off to whole milliseconds: of that part, and of the lease clock.
	marginPart = 2000
	marginMS   = 2
	// slack is how many timers of ended claims are left alone before the heap
	// is swept of them.
	slack = 16_384
	// sweepPart is how many timers are looked up under one read lock.
	sweepPart = 4096
)

// Reader calls fn with the state, under the lock that guards it.
type Reader func(fn func(*fsm.Machine))

// timer is when to look at a claim's lease. The lease itself is in the state:
// an extend does not touch the timers.
type timer struct {
	due    int64 // by U, in milliseconds
	taskID uint64
	token  uint64
}

// Timers is a heap of timers, the earliest first. A timer that comes too early,
// because the claim was extended, is pushed back; one whose claim has ended is
// dropped. Add may be called beside everything else; the other methods belong
// to one goroutine.
type Timers struct {
	wake chan struct{} // capacity 1: the earliest timer has changed

	mu   sync.Mutex
	heap []timer // guarded by mu
}

// NewTimers returns timers of no claim.
func NewTimers() *Timers { return &Timers{wake: make(chan struct{}, 1)} }

// Start begins with the claims that m has: what a leadership does first, under
// the lock of m, so that Add gets each claim that begins from then on.
func (t *Timers) Start(m *fsm.Machine) {
	var live []command.Lease
	for l := range m.Leases() {
		live = append(live, l)
	}
	t.Add(live)
}

// Add starts timers for claims that have begun. It is called under the state's
// lock, so it is quick. It returns whether the earliest timer is another now;
// then Wake has an element, too.
func (t *Timers) Add(leases []command.Lease) (changed bool) {
	t.mu.Lock()
	first := int64(-1)
	if len(t.heap) > 0 {
		first = t.heap[0].due
	}
	for _, l := range leases {
		t.pushLocked(timer{due: l.EndU, taskID: l.TaskID, token: l.Token})
	}
	changed = len(t.heap) > 0 && t.heap[0].due != first
	t.mu.Unlock()
	if changed {
		select {
		case t.wake <- struct{}{}:
		default:
		}
	}
	return changed
}

// Wake receives when the earliest timer has changed: Wait is to be asked again.
func (t *Timers) Wake() <-chan struct{} { return t.wake }

// Wait returns how long to sleep, at the time u of the lease clock, until the
// earliest timer is due.
func (t *Timers) Wait(u int64) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.heap) == 0 {
		return Idle
	}
	return time.Duration(max(t.heap[0].due-u, 0)) * time.Millisecond
}

// Late reports whether a sleep or a proposal took so much longer than it was to
// take that the process or the machine stood still. Then workers' extends still
// wait to be read, and the caller lets them go first for LatePause.
func Late(took, wanted time.Duration) bool { return took-wanted > LatePause }

// Due takes up to ItemsMax timers that are due at u by the lease clock, and
// returns the leases that have run out, as many as change up to TasksMax tasks:
// the end of a step may end the others of its parent. Those that have not, by an
// extend or by the margin for clocks that run unlike, are pushed back. more is
// false when no timer was due.
func (t *Timers) Due(read Reader, u int64) (expired []command.Lease, more bool) {
	due := t.pop(u, ItemsMax)
	if len(due) == 0 {
		return nil, false
	}
	var kept []timer
	var changes reach
	read(func(m *fsm.Machine) {
		for i, d := range due {
			lease, ok := m.Lease(d.taskID)
			if !ok || lease.Token != d.token {
				continue
			}
			if end := lease.EndU + marginMS + m.Get(d.taskID).ClaimLeaseMS/marginPart; end > u {
				kept = append(kept, timer{due: end, taskID: d.taskID, token: d.token})
				continue
			}
			if changes.add(m.Get(d.taskID)); changes.tasks > TasksMax && len(expired) > 0 {
				kept = append(kept, due[i:]...)
				return
			}
			expired = append(expired, lease)
		}
	})
	t.push(kept)
	return expired, true
}

// reach is how many tasks the ends of claims may change.
type reach struct {
	tasks   int
	parents map[uint64]bool // whose steps are in tasks: each of them is stopped once
}

// add adds the end of the task's claim.
func (r *reach) add(t *fsm.Task) {
	r.tasks++
	parentID, steps := t.Family()
	if steps == 0 || r.parents[parentID] {
		return
	}
	if r.parents == nil {
		r.parents = make(map[uint64]bool)
	}
	r.parents[parentID] = true
	r.tasks += steps
}

// Proposed is told how many claims the expiry of these leases ended: 0 if it was
// not written, or nobody knows. If not all, an extend has crossed it, and there
// is a claim which nothing else would look at again.
func (t *Timers) Proposed(leases []command.Lease, ended int) {
	if ended < len(leases) {
		t.Add(leases)
	}
}

// Sweep bounds the heap, of a state with so many claims: claims that ended long
// before their lease would have leave their timers behind.
func (t *Timers) Sweep(read Reader, claims int) {
	if t.len() < 2*claims+slack {
		return
	}
	t.sweep(func(all []timer) []timer {
		live := all[:0]
		// In parts, so that entries are applied in between.
		for len(all) > 0 {
			part := all[:min(len(all), sweepPart)]
			all = all[len(part):]
			read(func(m *fsm.Machine) {
				for _, d := range part {
					if lease, ok := m.Lease(d.taskID); ok && lease.Token == d.token {
						live = append(live, d)
					}
				}
			})
		}
		return live
	})
}

// sweep drops the timers that keep does not return.
func (t *Timers) sweep(keep func([]timer) []timer) {
	t.mu.Lock()
	all := t.heap
	t.heap = nil
	t.mu.Unlock()
	t.push(keep(all))
}

func (t *Timers) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.heap)
}

// pop takes up to limit timers that are due at u.
func (t *Timers) pop(u int64, limit int) []timer {
	t.mu.Lock()
	defer t.mu.Unlock()
	var due []timer
	for len(due) < limit && len(t.heap) > 0 && t.heap[0].due <= u {
		due = append(due, t.popLocked())
	}
	return due
}

func (t *Timers) push(timers []timer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, d := range timers {
		t.pushLocked(d)
	}
}

func (t *Timers) pushLocked(d timer) {
	h := append(t.heap, d)
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

func (t *Timers) popLocked() timer {
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
