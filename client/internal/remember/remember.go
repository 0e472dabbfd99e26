// Package remember keeps the last claim that a client made of each task, so that a program can complete a task by its
// id alone.
//
// It bounds its list itself, and knows neither calls nor leases.
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

// workers holds the ids of the workers in claims, each once.
type workers struct {
	ids    []string
	claims []int             // number of claims per id
	places map[string]uint32 // index in ids
	free   []uint32          // unused indexes
}

// add returns the index of the id and counts one more claim for it.
func (w *workers) add(id string) uint32 {
	at, ok := w.places[id]
	if !ok {
		at = w.place(id)
	}
	w.claims[at]++
	return at
}

// place assigns an index to the id.
func (w *workers) place(id string) (at uint32) {
	if w.places == nil {
		w.places = make(map[string]uint32)
	}
	if last := len(w.free) - 1; last >= 0 {
		at, w.free = w.free[last], w.free[:last]
		w.ids[at] = id
	} else {
		at = uint32(len(w.ids))
		w.ids, w.claims = append(w.ids, id), append(w.claims, 0)
	}
	w.places[id] = at
	return at
}

// remove counts one claim less for the id at that index.
func (w *workers) remove(at uint32) {
	if w.claims[at]--; w.claims[at] > 0 {
		return
	}
	delete(w.places, w.ids[at])
	w.ids[at] = ""
	w.free = append(w.free, at)
}
