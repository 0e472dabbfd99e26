package replica

import (
	"context"
	"fmt"

	"github.com/claimq/claimq/nodes"
)

// indexWaitersMax bounds the reads that wait for an index to be applied here.
const indexWaitersMax = 16_384

// Wait waits until the state reflects index. Errors: ctx's cause; nodes.ErrOverloaded if
// too many wait.
func (r *Replica) Wait(ctx context.Context, index uint64) error {
	if r.applied.Load() >= index {
		return nil
	}
	w := &indexWaiter{index: index, done: make(chan struct{})}
	r.waitMu.Lock()
	if len(r.waiters) >= indexWaitersMax {
		r.waitMu.Unlock()
		return &nodes.Overload{Bound: nodes.BoundWaitingReads, Text: fmt.Sprintf("%d reads wait for an index", indexWaitersMax)}
	}
	r.waiters.push(w)
	r.waiting.Store(int64(len(r.waiters)))
	r.waitMu.Unlock()
	// It may have been applied between the check and the push, because wake stores applied
	// before it checks waiting.
	if r.applied.Load() >= index {
		r.wake(r.applied.Load())
	}
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		r.waitMu.Lock()
		r.waiters.remove(w)
		r.waiting.Store(int64(len(r.waiters)))
		r.waitMu.Unlock()
		return context.Cause(ctx)
	}
}

// wake ends the waits for indexes up to index.
func (r *Replica) wake(index uint64) {
	if r.waiting.Load() == 0 {
		return
	}
	r.waitMu.Lock()
	defer r.waitMu.Unlock()
	for len(r.waiters) > 0 && r.waiters[0].index <= index {
		close(r.waiters.pop().done)
	}
	r.waiting.Store(int64(len(r.waiters)))
}

// indexWaiter is a wait for an index; pos is its place in the heap, -1 when it is no longer
// there.
type indexWaiter struct {
	index uint64
	pos   int
	done  chan struct{}
}

// indexHeap is a binary heap, lowest index first.
type indexHeap []*indexWaiter

func (h *indexHeap) push(w *indexWaiter) {
	w.pos = len(*h)
	*h = append(*h, w)
	h.up(w.pos)
}

func (h *indexHeap) pop() *indexWaiter {
	w := (*h)[0]
	h.remove(w)
	return w
}

func (h *indexHeap) remove(w *indexWaiter) {
	i := w.pos
	if i < 0 {
		return
	}
	last := len(*h) - 1
	h.swap(i, last)
	(*h)[last] = nil
	*h = (*h)[:last]
	w.pos = -1
	if i < last {
		h.up(i)
		h.down(i)
	}
}

func (h indexHeap) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].pos, h[j].pos = i, j
}

func (h indexHeap) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if h[parent].index <= h[i].index {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h indexHeap) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && h[child+1].index < h[child].index {
			child++
		}
		if h[i].index <= h[child].index {
			return
		}
		h.swap(i, child)
		i = child
	}
}
