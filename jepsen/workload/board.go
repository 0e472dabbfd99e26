package workload

import (
	"math/rand"
	"sync"
)

// boardMax bounds the tasks that are remembered of each kind.
const boardMax = 200

// board is what the callers tell each other about tasks.
type board struct {
	mu        sync.Mutex
	recent    ring // submitted
	abandoned ring // claimed by a worker that died
	ended     ring
	parents   ring // submitted
	plain     ring // submitted: without steps, and no step
}

// ring is the latest task ids of a kind.
type ring struct {
	ids  []uint64
	next int
}

func (r *ring) add(id uint64) {
	if len(r.ids) < boardMax {
		r.ids = append(r.ids, id)
		return
	}
	r.ids[r.next] = id
	r.next = (r.next + 1) % boardMax
}

// add notes a task.
func (b *board) add(r *ring, id uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r.add(id)
}

// pick returns one of the tasks, ok false if there is none.
func (b *board) pick(r *ring, rng *rand.Rand) (id uint64, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(r.ids) == 0 {
		return 0, false
	}
	return r.ids[rng.Intn(len(r.ids))], true
}
