package storage

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"
)

// unstoredMax bounds the appends under way; the next one waits. The batcher has one entry in
// flight, so there is rarely more than one.
const unstoredMax = 4

// unstored holds entries that are in a leader's log but not on its disk yet, because a leader sends
// an entry to the others while it writes it itself (docs/adr/0014-leader-writes-beside-sending.md).
// One goroutine may add; any number may wait.
type unstored struct {
	// write makes entries durable. It is called by one goroutine at a time, in order.
	write func([]*raft.Log) error

	// first is the lowest index that is not on disk, 0 = none is missing. It is set under mu.
	first atomic.Uint64

	mu      sync.Mutex    // guards the rest
	changed *sync.Cond    // on mu: something was written, or failed
	queue   [][]*raft.Log // by call, in order; the first is being written
	writing bool          // the goroutine runs
	err     error         // the first failure; nothing is written after it
}

func newUnstored(write func([]*raft.Log) error) *unstored {
	u := &unstored{write: write}
	u.changed = sync.NewCond(&u.mu)
	return u
}

// add queues the entries for writing; they must not be changed any more. It waits while too many
// are queued. An error is from an earlier write.
func (u *unstored) add(logs []*raft.Log) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	for u.err == nil && len(u.queue) >= unstoredMax {
		u.changed.Wait()
	}
	if u.err != nil {
		return u.err
	}
	u.queue = append(u.queue, logs)
	if len(u.queue) == 1 {
		u.first.Store(logs[0].Index)
	}
	if !u.writing {
		u.writing = true
		go u.run()
	}
	return nil
}

// run writes until nothing is left or something has failed.
func (u *unstored) run() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for len(u.queue) > 0 && u.err == nil {
		logs := u.queue[0]
		u.mu.Unlock()
		err := u.write(logs)
		u.mu.Lock()
		if u.err = err; err == nil {
			u.written()
		}
		u.changed.Broadcast()
	}
	u.writing = false
	u.changed.Broadcast()
}

// written removes the first call from the queue.
func (u *unstored) written() {
	copy(u.queue, u.queue[1:])
	u.queue[len(u.queue)-1] = nil
	u.queue = u.queue[:len(u.queue)-1]
	first := uint64(0)
	if len(u.queue) > 0 {
		first = u.queue[0][0].Index
	}
	u.first.Store(first)
}

// await waits until everything up to index is on disk. An error is from the write that failed; then
// it never will be.
func (u *unstored) await(index uint64) error {
	if !u.has(index) {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for u.has(index) && u.err == nil {
		u.changed.Wait()
	}
	if u.has(index) {
		return u.err
	}
	return nil
}

// has reports whether the entry at index, or one before it, is not on disk.
func (u *unstored) has(index uint64) bool {
	first := u.first.Load()
	return first != 0 && first <= index
}

// awaitAll waits until everything is on disk.
func (u *unstored) awaitAll() error { return u.await(math.MaxUint64) }

// close waits until everything is on disk or has failed, and no write is under way.
func (u *unstored) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for u.writing {
		u.changed.Wait()
	}
}

// stored returns the lower of index and the last one before the entries that are not on disk.
func (u *unstored) stored(index uint64) uint64 {
	if first := u.first.Load(); first != 0 && first <= index {
		return first - 1
	}
	return index
}
