package storage

import (
	"sync"

	"github.com/hashicorp/raft"
)

// An entry of more than LargeEntryBytes is large. Who appends such ones has at most
// LargeEntriesMax on their way.
const (
	LargeEntryBytes = 512 << 10
	LargeEntriesMax = 8
)

// cacheLargePart is what part of the bound the cache has room for when a large entry is
// put in: more than LargeEntriesMax.
const cacheLargePart = 8

// logEntryOverhead is what an entry costs in memory beside its data, bytes.
const logEntryOverhead = 128

// logCache keeps the newest entries of the log, bounded in bytes. Followers and
// the state machine read nearly everything from it.
//
// Invariant: the entries it holds have consecutive indexes, [first,
// first+count), in a ring. An entry that does not follow the newest one starts
// it again.
//
// Entries share their Data with whoever appended or reads them: nobody may
// change it.
//
// Large entries are those of a restore, of which there are as many as the state is large,
// and which a disk gives back as fast as memory is worth: beside the state that
// grows from them only the newest are kept.
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

// add puts logs in, oldest first, and drops the oldest until all fit. An entry
// takes the place of one with its index, and of those after that.
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

// get copies the entry at index to log, and reports whether it had it.
func (c *logCache) get(index uint64, log *raft.Log) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.count == 0 || index < c.first || index >= c.first+c.count {
		return false
	}
	*log = *c.slotLocked(index)
	return true
}

// deleteRange forgets the entries in [lo, hi], and what the ring cannot keep
// without them.
func (c *logCache) deleteRange(lo, hi uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count == 0 || hi < c.first || lo >= c.first+c.count || hi < lo {
		return
	}
	if lo > c.first {
		// The newest go; were there some above hi, they could not stay alone.
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
