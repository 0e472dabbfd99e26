package remember

import "sync"

// claimsMax bounds the claims that a client remembers; past it the oldest
// is forgotten.
const claimsMax = 65_536

// Claims remembers the last claim that this client made of each task,
// also after the claim has ended: completing twice must be recognized. It is
// safe for concurrent use, and its zero value is empty.
//
// What it holds has no pointers but the workers' ids, of which there are few: the collector
// of the program would else look at each claim again and again.
type Claims struct {
	mu      sync.Mutex
	byTask  map[uint64]uint32 // place in ring
	ring    []claim           // at most claimsMax
	next    uint32            // place in ring that comes next, once it is full
	workers workers
}

// Claim is a claim that this client made of a task.
type Claim struct {
	TaskID   uint64
	WorkerID string
	Token    uint64
}

// claim is a Claim in the ring, of task 0 if it is over.
type claim struct {
	task, token uint64
	worker      uint32 // in workers
}

// Add notes a claim. A claim of the same task with a lower token is
// forgotten; one with a higher token stays, this one is over.
func (m *Claims) Add(r Claim) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at, ok := m.byTask[r.TaskID]; ok {
		if m.ring[at].token > r.Token {
			return
		}
		m.drop(at)
	}
	if m.byTask == nil {
		m.byTask = make(map[uint64]uint32)
	}
	c := claim{r.TaskID, r.Token, m.workers.add(r.WorkerID)}
	if len(m.ring) < claimsMax {
		m.byTask[r.TaskID] = uint32(len(m.ring))
		m.ring = append(m.ring, c)
		return
	}
	at := m.next
	m.next = (m.next + 1) % claimsMax
	m.drop(at)
	m.byTask[r.TaskID], m.ring[at] = at, c
}

// drop forgets the claim at a place of the ring, unless it is over.
func (m *Claims) drop(at uint32) {
	c := &m.ring[at]
	if c.task == 0 {
		return
	}
	delete(m.byTask, c.task)
	m.workers.remove(c.worker)
	*c = claim{}
}

// Get returns the claim of the task, ok false if none is remembered.
func (m *Claims) Get(taskID uint64) (r Claim, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, ok := m.byTask[taskID]
	if !ok {
		return Claim{}, false
	}
	c := m.ring[at]
	return Claim{TaskID: taskID, WorkerID: m.workers.ids[c.worker], Token: c.token}, true
}

// Forget drops what is remembered of the task.
func (m *Claims) Forget(taskID uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at, ok := m.byTask[taskID]; ok {
		m.drop(at)
	}
}
