// Package replicatest provides input for tests of package replica and of nodes: entries,
// and snapshots in memory.
package replicatest

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// Entry returns a log entry of the commands, with both clocks at u.
func Entry(u int64, commands ...command.Command) []byte {
	return command.AppendEntry(nil, fsm.Stamp{U: u, T: u}, commands...)
}

// Applier applies entries, like *replica.Replica.
type Applier interface {
	ApplyEntry(index, term uint64, data []byte) *fsm.Applied
}

// Fill submits tasks of a size, in entries from first on, and returns the index of the last
// entry.
func Fill(f Applier, first uint64, tasks, size int) (last uint64) {
	params := []byte(`"` + strings.Repeat("x", size-2) + `"`)
	for last = first; tasks > 0; last++ {
		submit := command.Submit{Tasks: make([]fsm.NewTask, min(tasks, 100))}
		for i := range submit.Tasks {
			submit.Tasks[i] = fsm.NewTask{Type: "t", Params: params}
		}
		f.ApplyEntry(last, 1, Entry(int64(last), submit))
		tasks -= len(submit.Tasks)
	}
	return last - 1
}

// Persisted returns the state's snapshot.
func Persisted(t testing.TB, f raft.FSM) []byte {
	t.Helper()
	s, err := f.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Release()
	var sink Sink
	if err := s.Persist(&sink); err != nil {
		t.Fatal(err)
	}
	return sink.Bytes()
}

// Sink is a raft.SnapshotSink.
type Sink struct {
	bytes.Buffer
	Fail     error // error of every Write; nil = none
	Canceled bool
}

// Write implements io.Writer.
func (s *Sink) Write(b []byte) (int, error) {
	if s.Fail != nil {
		return 0, s.Fail
	}
	return s.Buffer.Write(b)
}

// Close implements raft.SnapshotSink.
func (s *Sink) Close() error { return nil }

// Cancel implements raft.SnapshotSink.
func (s *Sink) Cancel() error { s.Canceled = true; return nil }

// ID implements raft.SnapshotSink.
func (s *Sink) ID() string { return "memory" }

// Wrapped is a snapshot in the wrapped form in which Raft hands it over.
type Wrapped struct{ *Snapshot }

// WrappedReadCloser implements raft.ReadCloserWrapper.
func (w Wrapped) WrappedReadCloser() io.ReadCloser { return w.Snapshot }

var _ raft.ReadCloserWrapper = Wrapped{}

// Snapshot is a snapshot that can be read again.
type Snapshot struct {
	*bytes.Reader
	Again  func([]byte) []byte // changes the bytes for the second reading; nil = the same
	OnRead func()              // called by each Read after Rewind; nil = nothing
	Twice  bool                // Rewind was called
	data   []byte
}

// NewSnapshot returns a snapshot of these bytes.
func NewSnapshot(data []byte) *Snapshot {
	return &Snapshot{Reader: bytes.NewReader(data), data: data}
}

// Read implements io.Reader.
func (s *Snapshot) Read(b []byte) (int, error) {
	if s.Twice && s.OnRead != nil {
		s.OnRead()
	}
	return s.Reader.Read(b)
}

// Rewind makes the snapshot be read from its start.
func (s *Snapshot) Rewind() error {
	if s.Again != nil {
		s.data = s.Again(bytes.Clone(s.data))
	}
	s.Twice = true
	s.Reset(s.data)
	return nil
}

// Close implements io.Closer.
func (s *Snapshot) Close() error { return nil }
