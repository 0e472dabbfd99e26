package remember

import "sync"

// claimsMax bounds the claims that a client remembers; beyond it the oldest is forgotten.
const claimsMax = 65_536

// Claims remembers the last claim that this client made of each task, even after it has ended, because a second
// completion must be recognized. It is safe for concurrent use, and its zero value is empty.
//
// It holds no pointers except the workers' ids, of which there are few, so that the garbage collector need not scan
// every claim.
type Claims struct {
	mu      sync.Mutex
	byTask  map[uint64]uint32 // index in ring
	ring    []claim           // at most claimsMax
	next    uint32            // index in ring to use next, once it is full
	workers workers
}

// Claim is a claim that this client made of a task.
type Claim struct {
	TaskID   uint64
	WorkerID string
	Token    uint64
}

// claim is a Claim in the ring; task is 0 if it was dropped.
type claim struct {
	task, token uint64
	worker      uint32 // index in workers
}

// Add remembers a claim. Of two claims of a task the one with the higher token is kept.
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

// drop forgets the claim at an index of the ring, if there is one.
func (m *Claims) drop(at uint32) {
	c := &m.ring[at]
	if c.task == 0 {
		return
	}
	delete(m.byTask, c.task)
	m.workers.remove(c.worker)
	*c = claim{}
}

// Get returns the remembered claim of the task.
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

// Forget forgets the claim of the task.
func (m *Claims) Forget(taskID uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at, ok := m.byTask[taskID]; ok {
		m.drop(at)
	}
}
