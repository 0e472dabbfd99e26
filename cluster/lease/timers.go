package lease

import (
	"sync"
	"time"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

const (
	// ItemsMax bounds the leases returned by Due, and so the size of an entry.
	ItemsMax = 1024
	// TasksMax bounds the tasks that the expiry of these leases may change, not counting
	// those of the first one.
	TasksMax = 10_000
	// Idle bounds the timers' sleep when nothing is claimed.
	Idle = time.Minute
	// LatePause is the lateness above which the timers wait, and how long they wait, so that
	// extends that have piled up are applied before leases expire.
	LatePause = time.Second

	// marginPart is the part of a lease by which it lasts longer, so that a worker's clock
	// may be slower than the leader's by 0.05 %. marginMS compensates for rounding that
	// part and the lease clock to milliseconds.
	marginPart = 2000
	marginMS   = 2
	// slack is the number of timers of ended claims above which the heap is swept.
	slack = 16_384
	// sweepPart is the number of timers checked under one read lock.
	sweepPart = 4096
)

// Reader calls fn with the state, under the lock that guards it.
type Reader func(fn func(*fsm.Machine))

// timer says when to check a claim's lease. The lease itself is in the state, so an extend
// does not touch the timers.
type timer struct {
	due    int64 // by U, in milliseconds
	taskID uint64
	token  uint64
}

// Timers is a heap of timers, earliest first. A timer that fires too early, because the
// claim was extended, is pushed back; one whose claim has ended is dropped. Add may be
// called concurrently with anything; the other methods belong to one goroutine.
type Timers struct {
	wake chan struct{} // capacity 1: the earliest timer has changed

	mu   sync.Mutex
	heap []timer // guarded by mu
}

// NewTimers returns an empty set of timers.
func NewTimers() *Timers { return &Timers{wake: make(chan struct{}, 1)} }

// Start adds timers for the claims of m. A leadership calls it first, under the lock of m,
// so that Add gets every claim that begins later.
func (t *Timers) Start(m *fsm.Machine) {
	var live []command.Lease
	for l := range m.Leases() {
		live = append(live, l)
	}
	t.Add(live)
}

// Add starts timers for new claims. It is called under the state's lock, so it must be
// fast. changed reports whether the earliest timer has changed; then Wake receives, too.
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

// Wake receives when the earliest timer has changed, so that Wait should be called again.
func (t *Timers) Wake() <-chan struct{} { return t.wake }

// Wait returns how long to sleep, at time u of the lease clock, until the earliest timer is
// due.
func (t *Timers) Wait(u int64) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.heap) == 0 {
		return Idle
	}
	return time.Duration(max(t.heap[0].due-u, 0)) * time.Millisecond
}

// Late reports whether a sleep or a proposal took much longer than expected, because the process
// or the machine was paused. Then workers' extends may still be unread, and the caller should wait
// LatePause for them.
func Late(took, wanted time.Duration) bool { return took-wanted > LatePause }

// Due takes up to ItemsMax timers that are due at u by the lease clock, and returns the
// leases that have run out, as long as they change no more than TasksMax tasks: the end of
// a step may end other steps of its parent. Timers of claims that were extended, or are
// within the margin for slow clocks, are pushed back. more is false if no timer was due.
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

// reach counts the tasks that the ends of claims may change.
type reach struct {
	tasks   int
	parents map[uint64]bool // parents whose steps are in tasks, as each is stopped only once
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

// NoteExpired tells the timers how many of the leases that Due returned were then expired: 0 if
// the Expire was not written or its outcome is unknown. If some were not, for example because an
// extend came first, the timers are added again, because Due has removed them.
func (t *Timers) NoteExpired(leases []command.Lease, ended int) {
	if ended < len(leases) {
		t.Add(leases)
	}
}

// Sweep bounds the heap, given the state's number of claims. Claims that end long before
// their lease leave their timers behind, and leases that were shortened have several.
func (t *Timers) Sweep(read Reader, claims int) {
	if t.len() < 2*claims+slack {
		return
	}
	t.sweep(func(all []timer) []timer {
		live, known := all[:0], make(map[uint64]bool, claims)
		// In parts, so that entries are applied in between.
		for len(all) > 0 {
			part := all[:min(len(all), sweepPart)]
			all = all[len(part):]
			read(func(m *fsm.Machine) {
				for _, d := range part {
					if lease, ok := m.Lease(d.taskID); ok && lease.Token == d.token && !known[d.token] {
						known[d.token] = true
						live = append(live, timer{due: lease.EndU, taskID: d.taskID, token: d.token})
					}
				}
			})
		}
		return live
	})
}

// sweep keeps only the timers that keep returns.
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
