package storage

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"time"

	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

const walMetaFileName = "segments.json"

// walMeta keeps raft-wal's list of segments in a separate file, which is replaced as a
// whole and has a checksum, so that damage is detected. It implements types.MetaStore for
// one goroutine at a time, as raft-wal uses it.
//
// It also clears what a crash has left of an interrupted write (clearTorn), and completes
// what raft-wal leaves undone when it ends between the append that seals a segment and the
// change to the next one, which another goroutine makes: when opened again, raft-wal v0.4.2
// continues with the sealed segment, and every append fails.
type walMeta struct {
	dir     string
	filer   types.SegmentFiler
	size    int
	tail    uint64 // the newest entry known to have been written
	failure *walFailure
}

// walMetaFile is the contents of the file.
type walMetaFile struct {
	State types.PersistentState `json:"state"`
	// CRC is the CRC32C of this struct's JSON with CRC 0.
	CRC uint32 `json:"crc32c"`
}

func (f walMetaFile) checksum() (uint32, error) {
	f.CRC = 0
	b, err := json.Marshal(f)
	if err != nil {
		return 0, err
	}
	return crc32.Checksum(b, castagnoli()), nil
}

// create creates the list of a log without segments, unless it exists.
func (m *walMeta) create() error {
	exists, err := fileExists(filepath.Join(m.dir, walMetaFileName))
	if err != nil || exists {
		return err
	}
	return m.CommitState(types.PersistentState{NextSegmentID: 1})
}

// Load implements types.MetaStore.
func (m *walMeta) Load(string) (types.PersistentState, error) {
	state, err := m.read()
	if err != nil || len(state.Segments) == 0 {
		return state, err
	}
	return m.finishRotation(state)
}

func (m *walMeta) read() (types.PersistentState, error) {
	var f walMetaFile
	b, err := os.ReadFile(filepath.Join(m.dir, walMetaFileName))
	if err != nil {
		return f.State, err
	}
	if err := json.Unmarshal(b, &f); err != nil {
		return f.State, fmt.Errorf("%s: %w", walMetaFileName, err)
	}
	crc, err := f.checksum()
	if err == nil && crc != f.CRC {
		err = fmt.Errorf("%s: checksum mismatch", walMetaFileName)
	}
	return f.State, err
}

// finishRotation adds the next segment if the last one is sealed.
func (m *walMeta) finishRotation(state types.PersistentState) (types.PersistentState, error) {
	last := &state.Segments[len(state.Segments)-1]
	if !last.SealTime.IsZero() {
		return state, nil
	}
	err := clearTorn(filepath.Join(m.dir, segment.FileName(*last)), last.BaseIndex, m.tail)
	if errors.Is(err, os.ErrNotExist) {
		return state, nil // raft-wal creates it
	}
	if err != nil {
		return state, m.failure.note(err)
	}
	w, err := m.filer.RecoverTail(*last)
	if err != nil {
		return state, err
	}
	sealed, indexStart, err := w.Sealed()
	index := w.LastIndex()
	if err := errors.Join(err, w.Close()); err != nil || !sealed {
		return state, err
	}
	last.SealTime, last.MaxIndex, last.IndexStart = time.Now(), index, indexStart
	state.Segments = append(state.Segments, types.SegmentInfo{
		ID: state.NextSegmentID, BaseIndex: index + 1, MinIndex: index + 1,
		SizeLimit: uint32(m.size), Codec: wal.CodecBinaryV1, CreateTime: time.Now(),
	})
	state.NextSegmentID++
	return state, m.CommitState(state)
}

// CommitState implements types.MetaStore.
func (m *walMeta) CommitState(state types.PersistentState) error {
	f := walMetaFile{State: state}
	crc, err := f.checksum()
	if err != nil {
		return err
	}
	f.CRC = crc
	b, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return m.failure.note(reserveOf(filepath.Dir(m.dir)).replace(filepath.Join(m.dir, walMetaFileName), append(b, '\n')))
}

// errNoStable is returned when raft-wal is asked for data that is in raft.db.
var errNoStable = errors.New("the stable store is not kept here")

// GetStable implements types.MetaStore.
func (m *walMeta) GetStable([]byte) ([]byte, error) { return nil, errNoStable }

// SetStable implements types.MetaStore.
func (m *walMeta) SetStable([]byte, []byte) error { return errNoStable }

// Close implements types.MetaStore.
func (m *walMeta) Close() error { return nil }
