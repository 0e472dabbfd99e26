package client

import (
	"container/list"
	"sync"
)

// rememberedMax bounds the claims that a client remembers; past it the oldest
// is forgotten.
const rememberedMax = 65_536

// claimMemory remembers the last claim that this client made of each task,
// also after the claim has ended: completing twice must be recognized. It is
// safe for concurrent use, and its zero value is empty.
type claimMemory struct {
	mu     sync.Mutex
	byTask map[uint64]*list.Element // of *remembered
	order  list.List                // oldest first
}

type remembered struct {
	taskID   uint64
	workerID string
	token    uint64
}

// remember notes a claim. A claim of the same task with a lower token is
// forgotten; one with a higher token stays, this one is over.
func (m *claimMemory) remember(r remembered) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.byTask[r.taskID]; ok {
		if e.Value.(*remembered).token > r.token {
			return
		}
		e.Value = &r
		m.order.MoveToBack(e)
		return
	}
	if m.byTask == nil {
		m.byTask = make(map[uint64]*list.Element)
	}
	m.byTask[r.taskID] = m.order.PushBack(&r)
	if m.order.Len() > rememberedMax {
		oldest := m.order.Remove(m.order.Front()).(*remembered)
		delete(m.byTask, oldest.taskID)
	}
}

// recall returns the claim of the task, ok false if none is remembered.
func (m *claimMemory) recall(taskID uint64) (r remembered, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.byTask[taskID]
	if !ok {
		return remembered{}, false
	}
	return *e.Value.(*remembered), true
}

// forget drops what is remembered of the task.
func (m *claimMemory) forget(taskID uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.byTask[taskID]; ok {
		m.order.Remove(e)
		delete(m.byTask, taskID)
	}
}
