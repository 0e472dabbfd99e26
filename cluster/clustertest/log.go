package clustertest

import (
	"slices"
	"sync/atomic"

	"github.com/hashicorp/raft"
)

// tamperedLog is a log in memory that can change what it writes.
type tamperedLog struct {
	*raft.InmemStore
	change atomic.Pointer[func(*raft.Log)]
}

// StoreLog writes one entry.
func (l *tamperedLog) StoreLog(entry *raft.Log) error { return l.StoreLogs([]*raft.Log{entry}) }

// StoreLogs writes entries.
func (l *tamperedLog) StoreLogs(entries []*raft.Log) error {
	change := l.change.Load()
	if change == nil || *change == nil {
		return l.InmemStore.StoreLogs(entries)
	}
	changed := make([]*raft.Log, len(entries))
	for i, entry := range entries {
		copied := *entry
		copied.Data = slices.Clone(entry.Data)
		(*change)(&copied)
		changed[i] = &copied
	}
	return l.InmemStore.StoreLogs(changed)
}
