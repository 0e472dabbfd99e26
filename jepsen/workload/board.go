package workload

import (
	"math/rand"
	"sync"
)

// boardMax bounds the tasks of a pile.
const boardMax = 200

// pile is a kind of tasks on the board.
type pile int

const (
	recent    pile = iota // submitted
	abandoned             // claimed by a worker that died
	ended
	parents // submitted
	plain   // submitted: neither with steps nor a step
	piles
)

// board lets callers tell each other about tasks, mostly about recent ones.
type board struct {
	mu  sync.Mutex
	ids [piles][]uint64 // guarded by mu
}

// add notes a task.
func (b *board) add(p pile, id uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.ids[p]) < boardMax {
		b.ids[p] = append(b.ids[p], id)
		return
	}
	b.ids[p][id%boardMax] = id
}

// pick returns one of the tasks; ok is false without tasks.
func (b *board) pick(p pile, rng *rand.Rand) (id uint64, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.ids[p]) == 0 {
		return 0, false
	}
	return b.ids[p][rng.Intn(len(b.ids[p]))], true
}
