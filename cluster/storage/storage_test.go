package storage

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// testFatal returns a Fatal that fails the test.
func testFatal(t *testing.T) func(error) {
	return func(err error) { t.Errorf("fatal: %v", err) }
}

// storageBench is a data folder with its stores open.
type storageBench struct {
	*Stores
	dir  *Dir
	path string
}

// testSegmentBytes is the size of the log's segments in tests, which would spend most of their time on filling larger
// ones with zeros.
const testSegmentBytes = 1 << 20

func openTestStores(t *testing.T, path string, cfg Config) storageBench {
	t.Helper()
	return openStoresIn(t, mustOpenDataDir(t, path), cfg)
}

func openStoresIn(t *testing.T, d *Dir, cfg Config) storageBench {
	t.Helper()
	if cfg.Fatal == nil {
		cfg.Fatal = testFatal(t)
	}
	cfg.SegmentBytes = cmp.Or(cfg.SegmentBytes, testSegmentBytes)
	s, err := Open(d, cfg)
	if err != nil {
		t.Fatal(err)
	}
	b := storageBench{Stores: s, dir: d, path: d.path}
	t.Cleanup(func() { _ = s.Close() })
	return b
}

func (b storageBench) close(t *testing.T) {
	t.Helper()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := b.dir.Close(); err != nil {
		t.Fatal(err)
	}
}

// reopenError returns the error of Open for the folder at path.
func reopenError(t *testing.T, path string) error {
	t.Helper()
	d := mustOpenDataDir(t, path)
	defer d.Close()
	s, err := Open(d, Config{Fatal: testFatal(t)})
	if err == nil {
		_ = s.Close()
	}
	return err
}

// testEntry returns an entry whose every field depends on index.
func testEntry(index uint64) *raft.Log {
	log := &raft.Log{
		Index:      index,
		Term:       1 + index/10,
		Type:       raft.LogCommand,
		Data:       fmt.Appendf(nil, "%0*d", 40+index%200, index),
		AppendedAt: time.Unix(1_700_000_000, int64(index)).UTC(),
	}
	if index%7 == 0 {
		log.Extensions = fmt.Appendf(nil, "ext %d", index)
	}
	return log
}

func testEntries(lo, hi uint64) []*raft.Log {
	var logs []*raft.Log
	for i := lo; i <= hi; i++ {
		logs = append(logs, testEntry(i))
	}
	return logs
}

func mustStore(t *testing.T, l *Log, logs ...*raft.Log) {
	t.Helper()
	if err := l.StoreLogs(logs); err != nil {
		t.Fatal(err)
	}
}

func mustDelete(t *testing.T, l *Log, lo, hi uint64) {
	t.Helper()
	if err := l.DeleteRange(lo, hi); err != nil {
		t.Fatal(err)
	}
}

func equalLogs(a, b *raft.Log) bool {
	return a.Index == b.Index && a.Term == b.Term && a.Type == b.Type && a.AppendedAt.Equal(b.AppendedAt) &&
		bytes.Equal(a.Data, b.Data) && bytes.Equal(a.Extensions, b.Extensions)
}

// wantLog checks that the log is want, with nothing before or after.
func wantLog(t *testing.T, l *Log, want []*raft.Log) {
	t.Helper()
	first, _ := l.FirstIndex()
	last, _ := l.LastIndex()
	if len(want) == 0 {
		if first != 0 || last != 0 {
			t.Errorf("log has [%d, %d], want none", first, last)
		}
		return
	}
	if first != want[0].Index || last != want[len(want)-1].Index {
		t.Errorf("log has [%d, %d], want [%d, %d]", first, last, want[0].Index, want[len(want)-1].Index)
	}
	for _, w := range want {
		var got raft.Log
		if err := l.GetLog(w.Index, &got); err != nil {
			t.Fatalf("entry %d: %v", w.Index, err)
		}
		if !equalLogs(&got, w) {
			t.Fatalf("entry %d: got %+v, want %+v", w.Index, got, *w)
		}
	}
}

func TestStores_KeepWhatWasAcknowledged(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	b := openTestStores(t, path, Config{})
	if has, err := b.HasState(); err != nil || has {
		t.Errorf("new stores have state: %v, %v", has, err)
	}
	mustStore(t, b.Log, testEntries(1, 200)...)
	mustStore(t, b.Log, testEntries(201, 201)...)
	if err := b.Stable.SetUint64([]byte("CurrentTerm"), 7); err != nil {
		t.Fatal(err)
	}
	if err := b.Stable.Set([]byte("LastVoteCand"), []byte("uuid")); err != nil {
		t.Fatal(err)
	}
	b.close(t)

	b = openTestStores(t, path, Config{})
	wantLog(t, b.Log, testEntries(1, 201))
	if has, err := b.HasState(); err != nil || !has {
		t.Errorf("stores have state: %v, %v", has, err)
	}
	term, err := b.Stable.GetUint64([]byte("CurrentTerm"))
	if err != nil || term != 7 {
		t.Errorf("term: %d, %v", term, err)
	}
	cand, err := b.Stable.Get([]byte("LastVoteCand"))
	if err != nil || string(cand) != "uuid" {
		t.Errorf("vote: %q, %v", cand, err)
	}
	if _, err := b.Stable.Get([]byte("unknown")); err == nil || err.Error() != "not found" {
		t.Errorf("unknown key: %v", err)
	}
	if l, ok := any(b.Log).(raft.MonotonicLogStore); !ok || !l.IsMonotonic() {
		t.Error("the log does not say that it is monotonic")
	}
}

// A crash between a sent or restored snapshot and the end of the log that it replaces leaves a
// log that ends before the snapshot: the node starts, and its log continues after the snapshot.
func TestStores_GoOnBehindASnapshotAheadOfTheLog(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	b := openTestStores(t, path, Config{})
	mustStore(t, b.Log, testEntries(1, 10)...)
	takeSnapshot(t, b, 100, "the state")
	b.close(t)
	b = openTestStores(t, path, Config{})
	wantLog(t, b.Log, nil)
	mustStore(t, b.Log, testEntries(101, 103)...)
	b.close(t)
	b = openTestStores(t, path, Config{})
	wantLog(t, b.Log, testEntries(101, 103))
	// Entries after a snapshot stay.
	takeSnapshot(t, b, 103, "the state")
	b.close(t)
	b = openTestStores(t, path, Config{})
	wantLog(t, b.Log, testEntries(101, 103))
	b.close(t)
}

// Where a snapshot replaces entries of another history, those above it stay until the leader
// replaces them, and none below it may be sent to a node: neither when Raft asks for it, nor
// after a crash.
func TestStores_KeepWhatLiesAboveASnapshot(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	b := openTestStores(t, path, Config{})
	snapshot := uint64(0)
	b.Log.SnapshotAt(func() uint64 { return snapshot })
	mustStore(t, b.Log, testEntries(1, 20)...)

	snapshot = 5
	if !b.Log.IsMonotonic() {
		t.Fatal("the log does not say that it is monotonic")
	}
	mustDelete(t, b.Log, 1, 3) // an intermediate compaction
	mustDelete(t, b.Log, 4, 20)
	wantLog(t, b.Log, testEntries(6, 20))
	if !b.Log.IsMonotonic() {
		t.Fatal("the log does not say that it is monotonic")
	}
	mustDelete(t, b.Log, 6, 20) // the same snapshot again
	wantLog(t, b.Log, testEntries(6, 20))
	mustDelete(t, b.Log, 11, 20) // entries that the leader lacks
	mustDelete(t, b.Log, 6, 10)
	wantLog(t, b.Log, nil)
	others := testEntries(6, 30)
	for _, log := range others {
		log.Term++
	}
	mustStore(t, b.Log, others...)

	takeSnapshot(t, b, 10, "the state")
	b.close(t)
	b = openTestStores(t, path, Config{})
	wantLog(t, b.Log, others[5:])
	b.close(t)
}

// Entries that a crash left above a snapshot of a later term were never committed, and are
// dropped: they would be applied to the snapshot's state when a cluster is made from the
// folder.
func TestStores_DropWhatDoesNotFollowTheSnapshot(t *testing.T) {
	t.Parallel()
	for first := uint64(1); first <= 11; first += 5 { // the crash came before the deletion, or after it
		t.Run(fmt.Sprint("from ", first), func(t *testing.T) {
			t.Parallel()
			path := t.TempDir()
			b := openTestStores(t, path, Config{})
			entries := testEntries(1, 20)
			for _, log := range entries {
				log.Term = 1
			}
			mustStore(t, b.Log, entries...)
			if first > 1 {
				mustDelete(t, b.Log, 1, first-1)
			}
			takeSnapshot(t, b, 10, "the state")
			b.close(t)
			b = openTestStores(t, path, Config{})
			wantLog(t, b.Log, nil)
			mustStore(t, b.Log, testEntries(11, 12)...)
			b.close(t)
			b = openTestStores(t, path, Config{})
			wantLog(t, b.Log, testEntries(11, 12))
			b.close(t)
		})
	}
}

func TestStores_AreClosedOnce(t *testing.T) {
	t.Parallel()
	b := openTestStores(t, t.TempDir(), Config{})
	b.close(t)
	if err := b.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
	wantError(t, b.Log.StoreLogs(testEntries(1, 1)), ErrStorageClosed)
	wantError(t, b.Log.GetLog(1, new(raft.Log)), ErrStorageClosed)
}

// A crash may come between any two steps of creating the stores.
func TestStores_AreMadeAgainAfterACrash(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(dir string) error{
		"nothing yet": func(string) error { return nil },
		"tail only":   createTail,
		"half a log": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, logFileName+".tmp"), []byte("x"), 0o600)
		},
		"log, not noted": func(dir string) error { return createBoth(dir) },
		"half an identity": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, IdentityFile+".tmp"), []byte("{"), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := t.TempDir()
			if err := mustOpenDataDir(t, path).Close(); err != nil {
				t.Fatal(err)
			}
			if err := prepare(path); err != nil {
				t.Fatal(err)
			}
			b := openTestStores(t, path, Config{})
			mustStore(t, b.Log, testEntries(1, 3)...)
			b.close(t)
			wantLog(t, openTestStores(t, path, Config{}).Log, testEntries(1, 3))
		})
	}
}

func createBoth(dir string) error {
	if err := createTail(dir); err != nil {
		return err
	}
	return createBolt(filepath.Join(dir, logFileName))
}

func TestStores_RefuseToGoOnWithoutAFile(t *testing.T) {
	t.Parallel()
	for _, name := range []string{logFileName, tailFileName} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := t.TempDir()
			b := openTestStores(t, path, Config{})
			mustStore(t, b.Log, testEntries(1, 3)...)
			b.close(t)
			if err := os.Remove(filepath.Join(path, name)); err != nil {
				t.Fatal(err)
			}
			wantError(t, reopenError(t, path), ErrCorruptLog, name, "missing", "claimq cluster remove", "--join")
		})
	}
}

// bbolt waits forever for a file that another process has locked.
func TestStores_DoNotWaitForALockedLog(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	openTestStores(t, path, Config{})
	_, err := openBolt(filepath.Join(path, logFileName))
	wantError(t, err, ErrDataDirInUse, logFileName)
}

func TestCheckFreeSpace(t *testing.T) {
	t.Parallel()
	free, size, err := FreeSpace(t.TempDir())
	if err != nil || free == 0 || size < free {
		t.Errorf("got %d of %d, %v", free, size, err)
	}
	if _, _, err := FreeSpace(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Error("a missing folder has free space")
	}
}

// After a failed sync, the system's cached pages of a file may not be on its disk. A node
// relies on nothing that was read before the cache was dropped: any difference on the disk is
// noticed.
func TestOpenStores_relyOnTheDiskAlone(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]error{
		filepath.Join("wal", "*.wal"): ErrCorruptLog, logFileName: ErrCorruptLog, tailFileName: ErrCorruptLog,
		filepath.Join(snapshotsFolder, "*", snapshotDataFile): ErrCorruptSnapshot,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := t.TempDir()
			b := openTestStores(t, path, Config{})
			mustStore(t, b.Log, testEntries(1, 50)...)
			takeSnapshot(t, b, 20, "state")
			b.close(t)

			d := mustOpenDataDir(t, path)
			defer d.Close()
			s, err := Open(d, Config{Fatal: testFatal(t), ReadFromDisk: func(dir string) error {
				files, err := filepath.Glob(filepath.Join(dir, name))
				for _, file := range files {
					text, err := os.ReadFile(file)
					if err != nil {
						return err
					}
					clear(text) // the disk has nothing of it
					if err := os.WriteFile(file, text, dataFileMode); err != nil {
						return err
					}
				}
				if len(files) == 0 {
					t.Errorf("no file is called %s", name)
				}
				return err
			}})
			if err == nil {
				err = s.Close()
			}
			if !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
		})
	}
	d := mustOpenDataDir(t, t.TempDir())
	defer d.Close()
	if _, err := Open(d, Config{Fatal: testFatal(t), ReadFromDisk: func(string) error { return syscall.EIO }}); !errors.Is(err, syscall.EIO) {
		t.Errorf("a disk that cannot be synced: %v", err)
	}
}
