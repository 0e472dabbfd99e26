package storage

import (
	"sync"

	"github.com/hashicorp/raft"
)

// An entry of more than LargeEntryBytes is large. Code that appends large entries must have
// at most LargeEntriesMax in flight.
const (
	LargeEntryBytes = 512 << 10
	LargeEntriesMax = 8
)

// cacheLargePart: when a large entry is added, the cache is limited to this part of its
// bound, which is still more than LargeEntriesMax.
const cacheLargePart = 8

// logEntryOverhead is the memory of an entry in addition to its data, in bytes.
const logEntryOverhead = 128

// logCache keeps the newest entries of the log, bounded in bytes. Followers and the state
// machine read nearly everything from it.
//
// Invariant: it holds entries with consecutive indexes, [first, first+count), in a ring. An
// entry that does not follow the newest one starts it again.
//
// Entries share their Data with the code that appends or reads them, so it must not be
// changed.
//
// Large entries come from a restore, which has as many as the state is large, and a disk
// can return them quickly. So only the newest are kept, to leave the memory to the state
// that grows from them.
type logCache struct {
	bytesMax int64

	mu    sync.RWMutex // guards the rest
	ring  []raft.Log   // length a power of two, or 0
	first uint64       // index of the oldest; undefined if count is 0
	count uint64
	bytes int64
}

func newLogCache(bytesMax int64) *logCache {
	return &logCache{bytesMax: bytesMax}
}

func logEntryBytes(log *raft.Log) int64 {
	return int64(len(log.Data)) + int64(len(log.Extensions)) + logEntryOverhead
}

// add adds logs, oldest first, and drops the oldest until all fit. An entry replaces the
// one with its index and all after that.
func (c *logCache) add(logs []*raft.Log) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, log := range logs {
		c.addLocked(log)
	}
}

func (c *logCache) addLocked(log *raft.Log) {
	if c.count > 0 && (log.Index < c.first || log.Index > c.first+c.count) {
		c.clearLocked()
	}
	for c.count > 0 && c.first+c.count > log.Index {
		c.dropNewestLocked()
	}
	size := logEntryBytes(log)
	if size > c.bytesMax {
		c.clearLocked()
		return
	}
	room := c.bytesMax
	if size > LargeEntryBytes {
		room /= cacheLargePart
	}
	for c.count > 0 && c.bytes+size > room {
		c.dropOldestLocked()
	}
	if c.count == uint64(len(c.ring)) {
		c.growLocked()
	}
	if c.count == 0 {
		c.first = log.Index
	}
	*c.slotLocked(log.Index) = *log
	c.count++
	c.bytes += size
}

// get copies the entry at index to log, and reports whether it was in the cache.
func (c *logCache) get(index uint64, log *raft.Log) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.count == 0 || index < c.first || index >= c.first+c.count {
		return false
	}
	*log = *c.slotLocked(index)
	return true
}

// deleteRange drops the entries in [lo, hi], and those that the ring cannot keep without
// them.
func (c *logCache) deleteRange(lo, hi uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count == 0 || hi < c.first || lo >= c.first+c.count || hi < lo {
		return
	}
	if lo > c.first {
		// Drop the newest; any above hi could not stay without them.
		for c.count > 0 && c.first+c.count > lo {
			c.dropNewestLocked()
		}
		return
	}
	for c.count > 0 && c.first <= hi {
		c.dropOldestLocked()
	}
}

func (c *logCache) slotLocked(index uint64) *raft.Log {
	return &c.ring[index&uint64(len(c.ring)-1)]
}

func (c *logCache) dropOldestLocked() {
	slot := c.slotLocked(c.first)
	c.bytes -= logEntryBytes(slot)
	*slot = raft.Log{}
	c.first++
	c.count--
}

func (c *logCache) dropNewestLocked() {
	slot := c.slotLocked(c.first + c.count - 1)
	c.bytes -= logEntryBytes(slot)
	*slot = raft.Log{}
	c.count--
}

func (c *logCache) clearLocked() {
	for c.count > 0 {
		c.dropOldestLocked()
	}
}

func (c *logCache) growLocked() {
	old := c.ring
	c.ring = make([]raft.Log, max(2*len(old), 64))
	for i := c.first; i < c.first+c.count; i++ {
		*c.slotLocked(i) = old[i&uint64(len(old)-1)]
	}
}
