package clustertest

import (
	"io"
	"slices"
	"sync"
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

// snapshots keeps a node's newest complete snapshot in memory. Raft's own store would replace
// it by one that was cut off.
type snapshots struct {
	mu     sync.Mutex
	newest *raft.InmemSnapshotStore
	index  uint64
}

func newSnapshots() *snapshots { return &snapshots{newest: raft.NewInmemSnapshotStore()} }

// Create begins a snapshot. It is kept when its sink is closed.
func (s *snapshots) Create(version raft.SnapshotVersion, index, term uint64, configuration raft.Configuration, configurationIndex uint64, trans raft.Transport) (raft.SnapshotSink, error) {
	store := raft.NewInmemSnapshotStore()
	sink, err := store.Create(version, index, term, configuration, configurationIndex, trans)
	if err != nil {
		return nil, err
	}
	return &snapshotSink{sink, func() { s.keep(store, index) }}, nil
}

func (s *snapshots) keep(store *raft.InmemSnapshotStore, index uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if index >= s.index {
		s.newest, s.index = store, index
	}
}

func (s *snapshots) store() *raft.InmemSnapshotStore {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newest
}

// List returns the newest snapshot, if any.
func (s *snapshots) List() ([]*raft.SnapshotMeta, error) { return s.store().List() }

// Open returns the newest snapshot if it has that id.
func (s *snapshots) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	return s.store().Open(id)
}

// snapshotSink calls closed when it is closed.
type snapshotSink struct {
	raft.SnapshotSink
	closed func()
}

// Close completes the snapshot.
func (s *snapshotSink) Close() error {
	err := s.SnapshotSink.Close()
	if err == nil {
		s.closed()
	}
	return err
}
