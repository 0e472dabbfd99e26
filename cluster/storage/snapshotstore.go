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
	// snapshotGone is behind the name of a snapshot that is being removed.
	snapshotGone = ".gone" + snapshotTmp
	// snapshotsGoneMax bounds the snapshots that wait to be removed. One is written in
	// four times the time that it takes to remove it.
	snapshotsGoneMax = 1
	// snapshotTriesMax bounds how often a snapshot is begun with inodes of the reserve: others, and
	// the reserve itself, which is filled meanwhile, may be quicker.
	snapshotTriesMax = 10
	// snapshotBuffered is how many bytes at the end of an unfinished state Raft may
	// still have in memory: a bufio.Writer's, at its default size.
	snapshotBuffered = 4096
)

// Snapshots is raft.FileSnapshotStore, each snapshot a folder of its state and its
// metadata. It adds:
//
//   - a damaged newest snapshot is an ErrCorruptSnapshot: Raft alone would fall
//     back to an older one, and the log between the two may be gone;
//   - the metadata is repeated, with a checksum, in front of the state
//     (snapshotHeader), since Raft's checksum covers the state alone;
//   - only the newest two are kept, and those that are being read. The others, and what
//     was given up, go bit by bit (remover), under another name (snapshotGone);
//   - what a crash or a full disk left of an unfinished snapshot, or of one that was
//     being removed, is removed at the start;
//   - no other user may read snapshots, whatever the folder around them allows;
//   - a state goes to disk while it is written, not at the end (writeBack);
//   - names are on disk before a snapshot counts.
//
// It is safe for concurrent use.
type Snapshots struct {
	inner *raft.FileSnapshotStore
	path  string // of the folder that holds the snapshots
	guard *failStop
	gone  *remover
	// verified is the ID of the snapshot that was read whole when the store was
	// opened, nil once it was opened since: that is to restore it.
	verified atomic.Pointer[string]

	mu      sync.Mutex
	readers map[string]int // guarded by mu; who reads a snapshot, by its ID
}

// openSnapshots opens the snapshots of the data folder dir. The caller closes them.
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
		// It tries whether it can make a file, and needs an inode for that.
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

// removeIntoReserve returns what removes a file or a folder and has the reserve of the
// data folder dir, if it lacks any, take the inodes before others do.
func removeIntoReserve(dir string) func(path string) error {
	return func(path string) error {
		err := os.RemoveAll(path)
		FillReserve(dir)
		return err
	}
}

// close ends the removal of old snapshots. What is left of them stays.
func (s *Snapshots) close() { s.gone.close() }

// closeToOthers makes the folder at path, or takes from one that is there what it
// allows to others: Raft itself makes it, and all in it, for everybody to read.
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

// removeUnfinishedSnapshots removes what is unfinished of the snapshots at path whose names
// begin so.
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

// verifyNewest reads the newest snapshot whole and returns index and term of its last
// entry, 0 if there is none. Errors: ErrCorruptSnapshot, or of reading it.
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

// newest returns the ID of the newest snapshot, "" if there is none.
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

// all returns the IDs of all snapshots, the newest last. It goes by the folders'
// names, which are term, index and time: metadata may be damaged.
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

// List implements raft.SnapshotStore. It returns the newest snapshot only, so
// that Raft has nothing to fall back to.
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

// Open implements raft.SnapshotStore. The state has been verified when it
// returns: that of the newest one at the store's opening, if it was not opened
// since. Damage ends the process: what this node would send or restore is not
// what it took.
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

// open opens a snapshot at its state, and keeps it until that is closed. If verify is
// true all of it has been read, against Raft's checksum.
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

// snapshotReadSize is how much of a snapshot is read at a time.
const snapshotReadSize = 256 << 10

// snapshotFile reads the state of a snapshot, which is behind the header. Not safe
// for concurrent use.
type snapshotFile struct {
	store    *Snapshots
	id       string
	file     *os.File
	start    int64
	buffered *bufio.Reader
}

// Read implements io.Reader.
func (f *snapshotFile) Read(b []byte) (int, error) { return f.buffered.Read(b) }

// Close implements io.Closer. The snapshot may go then.
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

// readMeta reads a snapshot's metadata and checks what can be checked without
// the state.
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

// readError words an error of reading snapshot id. An error of the file system
// is one; a snapshot that was just replaced by newer ones is missing as a
// whole; all else is damage.
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

// reap removes, bit by bit, all snapshots but those that are kept.
func (s *Snapshots) reap() error {
	old, err := s.setOldAside()
	if len(old) > 0 {
		// A crash must not bring the old name back to what is half removed.
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

// setOldAside renames all snapshots but those that are kept, and returns the new paths.
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
			// Another one, that was sent or is taken, may be on its way beside it.
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
		// The two files have their names now, and keep them.
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
	file  *os.File // of the state: Raft has its own
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

// Close implements raft.SnapshotSink: when it returns nil, the snapshot is on
// disk and the newest.
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

// Cancel implements raft.SnapshotSink. It removes what was written, also on a
// full disk, where Raft's own leaves it; bit by bit, while Raft's would do it at once.
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

// closeFile closes the descriptor of the state that nothing was written by.
func (s *snapshotSink) closeFile() {
	if s.file != nil {
		_ = s.file.Close()
	}
}

func (s *snapshotSink) removeUnfinished() error {
	return os.RemoveAll(filepath.Join(s.store.path, s.ID()+snapshotTmp))
}
