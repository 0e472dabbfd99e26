package remember

import (
	"container/list"
	"sync"
)

// claimsMax bounds the claims that a client remembers; past it the oldest
// is forgotten.
const claimsMax = 65_536

// Claims remembers the last claim that this client made of each task,
// also after the claim has ended: completing twice must be recognized. It is
// safe for concurrent use, and its zero value is empty.
type Claims struct {
	mu     sync.Mutex
	byTask map[uint64]*list.Element // of *remembered
	order  list.List                // oldest first
}

// Claim is a claim that this client made of a task.
type Claim struct {
	TaskID   uint64
	WorkerID string
	Token    uint64
}

// Add notes a claim. A claim of the same task with a lower token is
// forgotten; one with a higher token stays, this one is over.
func (m *Claims) Add(r Claim) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.byTask[r.TaskID]; ok {
		if e.Value.(*Claim).Token > r.Token {
			return
		}
		e.Value = &r
		m.order.MoveToBack(e)
		return
	}
	if m.byTask == nil {
		m.byTask = make(map[uint64]*list.Element)
	}
	m.byTask[r.TaskID] = m.order.PushBack(&r)
	if m.order.Len() > claimsMax {
		oldest := m.order.Remove(m.order.Front()).(*Claim)
		delete(m.byTask, oldest.TaskID)
	}
}

// Get returns the claim of the task, ok false if none is remembered.
func (m *Claims) Get(taskID uint64) (r Claim, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.byTask[taskID]
	if !ok {
		return Claim{}, false
	}
	return *e.Value.(*Claim), true
}

// Forget drops what is remembered of the task.
func (m *Claims) Forget(taskID uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.byTask[taskID]; ok {
		m.order.Remove(e)
		delete(m.byTask, taskID)
	}
}
