package storage

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

const (
	snapshotsFolder  = "snapshots"
	snapshotMetaFile = "meta.json"
	snapshotDataFile = "state.bin"
	snapshotTmp      = ".tmp"
	// snapshotGone is the suffix of a snapshot that is being removed.
	snapshotGone = ".gone" + snapshotTmp
	// snapshotsGoneMax bounds the snapshots waiting to be removed. Writing one takes four times as
	// long as removing it.
	snapshotsGoneMax = 1
	// snapshotTriesMax bounds how often a snapshot is started with inodes of the reserve, because
	// other processes, and the filling of the reserve, may take them first.
	snapshotTriesMax = 10
	// snapshotBuffered is the number of bytes at the end of an unfinished state that Raft may still
	// have in memory: the default size of a bufio.Writer.
	snapshotBuffered = 4096
)

// Snapshots wraps raft.FileSnapshotStore, which keeps each snapshot in a folder with its state and
// metadata. It adds:
//
//   - A damaged newest snapshot is an ErrCorruptSnapshot. Raft alone would fall back to an older one, although the log between the two may be gone.
//   - The metadata is repeated, with a checksum, before the state (encodeSnapshotHeader), because Raft's checksum covers only the state.
//   - Only the newest two are kept, and those being read. Others, and abandoned ones, are removed in small steps (remover) under another name (snapshotGone).
//   - What a crash or a full disk has left of an unfinished snapshot, or of one being removed, is removed at the start.
//   - No other user may read snapshots, whatever the permissions of the folder above.
//   - A state goes to disk while it is written, not at the end (writeBack).
//   - Names are on disk before a snapshot counts.
//
// It is safe for concurrent use.
type Snapshots struct {
	inner *raft.FileSnapshotStore
	path  string // of the folder with the snapshots
	guard *failStop
	gone  *remover
	// verified is the ID of the snapshot that was read completely when the store was opened, until
	// it is opened again for restoring it; then nil.
	verified atomic.Pointer[string]

	mu      sync.Mutex
	readers map[string]int // guarded by mu; number of readers by snapshot ID
}

// openSnapshots opens the snapshots of the data folder dir. The caller must close them.
func openSnapshots(dir string, logger hclog.Logger, guard *failStop) (*Snapshots, error) {
	path := filepath.Join(dir, snapshotsFolder)
	if err := removeUnfinishedSnapshots(path, ""); err != nil {
		return nil, storageError(dir, "remove unfinished snapshots", err)
	}
	if err := closeToOthers(path); err != nil {
		return nil, storageError(dir, "open snapshots", err)
	}
	inner, err := raft.NewFileSnapshotStoreWithLogger(dir, math.MaxInt, logger) // it removes none
	if err != nil && reserveOf(dir).free(1) {
		// It tests whether it can create a file, and needs an inode for that.
		inner, err = raft.NewFileSnapshotStoreWithLogger(dir, math.MaxInt, logger)
	}
	if err != nil {
		return nil, storageError(dir, "open snapshots", err)
	}
	if err := syncDir(dir); err != nil {
		return nil, storageError(dir, "open snapshots", err)
	}
	return &Snapshots{
		inner: inner, path: path, guard: guard, gone: newRemover(snapshotsGoneMax, removeIntoReserve(dir), logger),
		readers: make(map[string]int),
	}, nil
}

// removeIntoReserve returns a function that removes a file or folder and then fills the reserve of
// the data folder dir with the inodes, if it lacks any, before others take them.
func removeIntoReserve(dir string) func(path string) error {
	return func(path string) error {
		err := os.RemoveAll(path)
		FillReserve(dir)
		return err
	}
}

// close ends the removal of old snapshots. The rest of them stays.
func (s *Snapshots) close() { s.gone.close() }

// closeToOthers creates the folder at path, or removes others' permissions from an existing one,
// because Raft creates it and everything in it readable for all.
func closeToOthers(path string) error {
	if err := os.MkdirAll(path, dataDirMode); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&^dataDirMode == 0 {
		return err
	}
	return os.Chmod(path, dataDirMode)
}

// removeUnfinishedSnapshots removes the unfinished snapshots at path whose names have the prefix.
func removeUnfinishedSnapshots(path, prefix string) error {
	entries, err := os.ReadDir(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	removed := false
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), prefix) && strings.HasSuffix(e.Name(), snapshotTmp) {
			if err := os.RemoveAll(filepath.Join(path, e.Name())); err != nil {
				return err
			}
			removed = true
		}
	}
	if !removed {
		return nil
	}
	return syncDir(path)
}

// verifyNewest reads the newest snapshot completely and returns index and term of its last entry,
// or zeros without a snapshot. Errors: ErrCorruptSnapshot, or those of reading.
func (s *Snapshots) verifyNewest() (index, term uint64, err error) {
	id, err := s.newest()
	if err != nil || id == "" {
		return 0, 0, err
	}
	meta, state, err := s.open(id, true)
	if err != nil {
		return 0, 0, err
	}
	s.verified.Store(&id)
	return meta.Index, meta.Term, state.Close()
}

// newest returns the ID of the newest snapshot, or "".
func (s *Snapshots) newest() (string, error) {
	ids, err := s.all()
	if err != nil {
		return "", DirError(filepath.Dir(s.path), err)
	}
	if len(ids) == 0 {
		return "", nil
	}
	return ids[len(ids)-1], nil
}

// all returns the IDs of all snapshots, newest last. It uses the names of the folders, which
// contain term, index and time, because metadata may be damaged.
func (s *Snapshots) all() ([]string, error) {
	entries, err := os.ReadDir(s.path)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, entry := range entries {
		if _, ok := parseSnapshotID(entry.Name()); ok && entry.IsDir() {
			ids = append(ids, entry.Name())
		}
	}
	sort.Slice(ids, func(i, j int) bool {
		a, _ := parseSnapshotID(ids[i])
		b, _ := parseSnapshotID(ids[j])
		return lessSnapshotKey(a, b)
	})
	return ids, nil
}

func parseSnapshotID(id string) (key [3]uint64, ok bool) {
	parts := strings.Split(id, "-")
	if len(parts) != len(key) {
		return key, false
	}
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, 64)
		if err != nil {
			return key, false
		}
		key[i] = n
	}
	return key, true
}

func lessSnapshotKey(a, b [3]uint64) bool {
	for i := range a {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}

// List implements raft.SnapshotStore. It returns only the newest snapshot, so that Raft cannot fall
// back to another.
func (s *Snapshots) List() ([]*raft.SnapshotMeta, error) {
	id, err := s.newest()
	if err != nil || id == "" {
		return nil, err
	}
	meta, err := s.readMeta(id)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(s.statePath(id))
	if err != nil {
		return nil, s.readError(id, err)
	}
	defer f.Close()
	size, err := readSnapshotHeader(f, meta)
	if err != nil {
		return nil, corruptSnapshot(filepath.Join(s.path, id), err.Error())
	}
	meta.Size -= size
	return []*raft.SnapshotMeta{meta}, nil
}

// Open implements raft.SnapshotStore. The state has been verified when it returns; for the newest
// one this happened when the store was opened, if it has not been opened since. Damage ends the
// process, because this node would send or restore something else than it took.
func (s *Snapshots) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	known := s.verified.Swap(nil)
	meta, state, err := s.open(id, known == nil || *known != id)
	if errors.Is(err, ErrCorruptSnapshot) {
		err = s.guard.fail(err)
	}
	if err != nil {
		return nil, nil, err
	}
	return meta, state, nil
}

// open opens a snapshot at its state, and keeps it until that is closed. If verify is true, all of
// it is checked against Raft's checksum.
func (s *Snapshots) open(id string, verify bool) (*raft.SnapshotMeta, *snapshotFile, error) {
	s.countReader(id, 1)
	meta, state, err := s.openCounted(id, verify)
	if err != nil {
		s.countReader(id, -1)
	}
	return meta, state, err
}

func (s *Snapshots) countReader(id string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readers[id] += n; s.readers[id] == 0 {
		delete(s.readers, id)
	}
}

func (s *Snapshots) openCounted(id string, verify bool) (*raft.SnapshotMeta, *snapshotFile, error) {
	meta, err := s.readMeta(id)
	if err != nil {
		return nil, nil, err
	}
	if verify {
		_, state, err := s.inner.Open(id)
		if err == nil {
			err = state.Close()
		}
		if err != nil {
			return nil, nil, s.readError(id, err)
		}
	}
	f, err := os.Open(s.statePath(id))
	if err != nil {
		return nil, nil, s.readError(id, err)
	}
	size, err := readSnapshotHeader(f, meta)
	if err != nil {
		err = corruptSnapshot(filepath.Join(s.path, id), err.Error())
		return nil, nil, errors.Join(err, f.Close())
	}
	meta.Size -= size
	return meta, &snapshotFile{store: s, id: id, file: f, start: size, buffered: bufio.NewReaderSize(f, snapshotReadSize)}, nil
}

// snapshotReadSize is the size of the read buffer.
const snapshotReadSize = 256 << 10

// snapshotFile reads the state of a snapshot, after the header. Not safe for concurrent use.
type snapshotFile struct {
	store    *Snapshots
	id       string
	file     *os.File
	start    int64
	buffered *bufio.Reader
}

// Read implements io.Reader.
func (f *snapshotFile) Read(b []byte) (int, error) { return f.buffered.Read(b) }

// Close implements io.Closer. The snapshot may then be removed.
func (f *snapshotFile) Close() error {
	if err := f.file.Close(); err != nil {
		return err
	}
	f.store.countReader(f.id, -1)
	return f.store.reap()
}

// Rewind goes back to the start of the state.
func (f *snapshotFile) Rewind() error {
	if _, err := f.file.Seek(f.start, io.SeekStart); err != nil {
		return fmt.Errorf("read snapshot %s again: %w", f.file.Name(), err)
	}
	f.buffered.Reset(f.file)
	return nil
}

// readMeta reads a snapshot's metadata and checks it as far as possible without the state.
func (s *Snapshots) readMeta(id string) (*raft.SnapshotMeta, error) {
	b, err := os.ReadFile(filepath.Join(s.path, id, snapshotMetaFile))
	if err != nil {
		return nil, s.readError(id, err)
	}
	var meta raft.SnapshotMeta
	if err := json.Unmarshal(b, &meta); err != nil {
		return nil, corruptSnapshot(filepath.Join(s.path, id), snapshotMetaFile+": "+err.Error())
	}
	info, err := os.Stat(s.statePath(id))
	if err != nil {
		return nil, s.readError(id, err)
	}
	if meta.ID != id || meta.Size != info.Size() {
		return nil, corruptSnapshot(filepath.Join(s.path, id),
			fmt.Sprintf("%s is of snapshot %q with %d bytes, %s has %d", snapshotMetaFile, meta.ID, meta.Size, snapshotDataFile, info.Size()))
	}
	return &meta, nil
}

func (s *Snapshots) statePath(id string) string {
	return filepath.Join(s.path, id, snapshotDataFile)
}

// readError classifies an error of reading snapshot id. Errors of the file system are kept; a
// snapshot that was just replaced by newer ones is missing completely; everything else is damage.
func (s *Snapshots) readError(id string, err error) error {
	path := filepath.Join(s.path, id)
	var pathErr *os.PathError
	if errors.As(err, &pathErr) {
		there, statErr := fileExists(path)
		if errors.Is(err, os.ErrNotExist) && there && statErr == nil {
			return corruptSnapshot(path, err.Error())
		}
		return fmt.Errorf("read snapshot %s: %w", path, err)
	}
	return corruptSnapshot(path, err.Error())
}

// reap removes, in small steps, all snapshots except those that are kept.
func (s *Snapshots) reap() error {
	old, err := s.setOldAside()
	if len(old) > 0 {
		// A crash must not bring back the old name of a snapshot that is half removed.
		err = errors.Join(err, syncDir(s.path))
	}
	if err != nil {
		return s.writeError("remove old snapshots", err)
	}
	for _, path := range old {
		s.gone.remove(path)
	}
	return nil
}

// setOldAside renames all snapshots except those that are kept, and returns the new paths.
func (s *Snapshots) setOldAside() (old []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids, err := s.all()
	if err != nil {
		return nil, err
	}
	for _, id := range ids[:max(0, len(ids)-snapshotsRetained)] {
		if s.readers[id] > 0 {
			continue
		}
		path := filepath.Join(s.path, id)
		if err := os.Rename(path, path+snapshotGone); err != nil {
			return old, err
		}
		old = append(old, path+snapshotGone)
	}
	return old, nil
}

// Create implements raft.SnapshotStore.
func (s *Snapshots) Create(version raft.SnapshotVersion, index, term uint64, configuration raft.Configuration,
	configurationIndex uint64, trans raft.Transport,
) (raft.SnapshotSink, error) {
	create := func() (raft.SnapshotSink, error) {
		inner, err := s.inner.Create(version, index, term, configuration, configurationIndex, trans)
		if err != nil {
			// Another one, received or being taken, may be written at the same time, so remove only
			// our own.
			own := fmt.Sprintf("%d-%d-", term, index)
			err = errors.Join(err, removeUnfinishedSnapshots(s.path, own))
		}
		return inner, err
	}
	inner, err := create()
	for try := 1; noRoom(err) && try < snapshotTriesMax && reserveOf(filepath.Dir(s.path)).free(snapshotInodes); try++ {
		inner, err = create()
	}
	if err != nil {
		return nil, s.writeError("create a snapshot", err)
	}
	sink := &snapshotSink{SnapshotSink: inner, store: s}
	sink.file, err = os.Open(filepath.Join(s.path, inner.ID()+snapshotTmp, snapshotDataFile))
	if err != nil {
		return nil, errors.Join(s.writeError("create a snapshot", err), sink.Cancel())
	}
	sink.back = newWriteBack(sink.file)
	header := encodeSnapshotHeader(&raft.SnapshotMeta{
		Version: version, Index: index, Term: term,
		Configuration: configuration, ConfigurationIndex: configurationIndex,
	})
	_, err = sink.Write(header)
	if err == nil {
		// Make the names of the two files durable.
		err = syncDir(filepath.Join(s.path, inner.ID()+snapshotTmp))
	}
	if err != nil {
		return nil, errors.Join(s.writeError("create a snapshot", err), sink.Cancel())
	}
	return sink, nil
}

func (s *Snapshots) writeError(step string, err error) error {
	if err == nil {
		return nil
	}
	return storageError(filepath.Dir(s.path), step, err)
}

// snapshotSink is a snapshot being written. Not safe for concurrent use.
type snapshotSink struct {
	raft.SnapshotSink
	store *Snapshots
	file  *os.File // of the state; Raft has its own
	back  writeBack
}

// Write implements raft.SnapshotSink.
func (s *snapshotSink) Write(b []byte) (int, error) {
	n, err := s.SnapshotSink.Write(b)
	if err == nil {
		err = s.back.wrote(n, snapshotBuffered)
	}
	return n, s.store.writeError("write a snapshot", err)
}

// Close implements raft.SnapshotSink. When it returns nil, the snapshot is on disk and is the
// newest.
func (s *snapshotSink) Close() error {
	err := s.SnapshotSink.Close()
	s.closeFile()
	if err == nil {
		err = syncDir(s.store.path)
	}
	if err != nil {
		return errors.Join(s.store.writeError("finish a snapshot", err), s.removeUnfinished())
	}
	return s.store.reap()
}

// Cancel implements raft.SnapshotSink. It removes what was written, even on a full disk, where
// Raft's own leaves it, and in small steps.
func (s *snapshotSink) Cancel() error {
	path := filepath.Join(s.store.path, s.ID())
	if err := os.Rename(path+snapshotTmp, path+snapshotGone); err == nil {
		defer s.store.gone.remove(path + snapshotGone)
	}
	err := s.SnapshotSink.Cancel()
	s.closeFile()
	if removeErr := s.removeUnfinished(); removeErr != nil {
		return errors.Join(err, removeErr)
	}
	return nil
}

// closeFile closes the descriptor of the state, through which nothing was written.
func (s *snapshotSink) closeFile() {
	if s.file != nil {
		_ = s.file.Close()
	}
}

func (s *snapshotSink) removeUnfinished() error {
	return os.RemoveAll(filepath.Join(s.store.path, s.ID()+snapshotTmp))
}
