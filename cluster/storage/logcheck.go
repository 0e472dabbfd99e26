package storage

import (
	"fmt"

	"github.com/hashicorp/raft"
)

// logSummary is the result of checking a log.
type logSummary struct {
	first, last uint64 // 0, 0 = empty
	sizes       logSizes
}

// logChecker goes through the log from its oldest entry to its newest.
type logChecker struct {
	snapshotIndex uint64
	tail          logTail
	summary       logSummary
	tailSeen      bool
}

// check checks the next entry, as stored on disk.
func (c *logChecker) check(index uint64, log *raft.Log) error {
	if err := unsealEntry(index, log); err != nil {
		return fmt.Errorf("entry %d: %w", index, err)
	}
	// Below a snapshot gaps are normal: a node that was sent one continues after it and
	// keeps its older entries.
	if index > c.snapshotIndex+1 && index != c.summary.last+1 {
		return fmt.Errorf("entries %d to %d are missing (the newest snapshot is at %d)",
			max(c.summary.last, c.snapshotIndex)+1, index-1, c.snapshotIndex)
	}
	if index == c.tail.index {
		if entryChecksum(log) != c.tail.crc {
			return fmt.Errorf("entry %d is an older one than was last written", index)
		}
		c.tailSeen = true
	}
	if c.summary.first == 0 {
		c.summary.first = index
	}
	c.summary.last = index
	c.summary.sizes.add(index, int64(len(log.Data)+len(log.Extensions)))
	return nil
}

func (c *logChecker) finish() error {
	if c.tail.index > c.summary.last {
		return fmt.Errorf("it ends at entry %d, but %d had been written", c.summary.last, c.tail.index)
	}
	if c.tail.index >= c.summary.first && c.tail.index > 0 && !c.tailSeen {
		return fmt.Errorf("entry %d, once the newest, is missing", c.tail.index)
	}
	return nil
}
