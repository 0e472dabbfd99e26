package storage

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"

	"github.com/claimq/claimq/cluster/storage/disktest"
	"github.com/claimq/claimq/internal/proof"
	"github.com/claimq/claimq/internal/testwait"
)

// smallWAL makes a log with segments of 1 KiB. It returns its folder, and a function that opens
// it.
func smallWAL(t *testing.T) (path string, open func() *walStore) {
	t.Helper()
	path = t.TempDir()
	if err := createWAL(path); err != nil {
		t.Fatal(err)
	}
	return path, func() *walStore {
		t.Helper()
		w, err := openWAL(path, 1<<10, 0, hclog.NewNullLogger())
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
}

// Many large entries that come together leave little in memory: raft-wal alone keeps twice the
// largest append as long as their segment exists.
func TestWAL_LargeEntriesTogether(t *testing.T) {
	path := t.TempDir()
	if err := createWAL(path); err != nil {
		t.Fatal(err)
	}
	w, err := openWAL(path, walSegmentBytes, 0, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	before := liveBytes()
	logs := testEntries(1, 15)
	for _, log := range logs {
		log.Data = bytes.Repeat(log.Data[:1], 1<<20)
	}
	if err := w.StoreLogs(logs); err != nil {
		t.Fatal(err)
	}
	last := logs[14]
	if more := liveBytes() - before; more > 8<<20 {
		t.Errorf("%d MiB are left in memory", more>>20)
	}
	var log raft.Log
	if err := w.GetLog(15, &log); err != nil || !equalLogs(&log, last) {
		t.Errorf("the last entry: %v", err)
	}
}

// liveBytes returns the size of the live heap.
func liveBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// After raft-wal is closed right after any append, it continues at the same place.
func TestWAL_ClosedWhileItChangesSegments(t *testing.T) {
	t.Parallel()
	_, open := smallWAL(t)
	for i := uint64(1); i <= 100; i++ {
		w := open()
		if err := w.StoreLogs(testEntries(i, i)); err != nil {
			t.Fatalf("append entry %d: %v", i, err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	w := open()
	defer w.Close()
	for i := uint64(1); i <= 100; i++ {
		var log raft.Log
		if err := w.GetLog(i, &log); err != nil || !equalLogs(&log, testEntry(i)) {
			t.Errorf("entry %d: %+v, %v", i, log, err)
		}
	}
}

// walFolder is a closed data folder with its log in raft-wal: several segments, a rewritten end,
// an entry longer than a segment.
type walFolder struct {
	path  string
	files map[string][]byte // of the wal folder
	want  []*raft.Log
}

func newWALFolder(t *testing.T) walFolder {
	t.Helper()
	f := walFolder{path: disktest.MemoryDir(t), files: map[string][]byte{}}
	d, err := OpenDir(f.path, "n1")
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(d, Config{Fatal: testFatal(t), SegmentBytes: 4 << 10})
	if err != nil {
		t.Fatal(err)
	}
	for i := uint64(1); i <= 80; i += 4 {
		mustStore(t, s.Log, testEntries(i, i+3)...)
	}
	long := testEntry(81)
	long.Data = bytes.Repeat([]byte("long"), 3000)
	mustStore(t, s.Log, long)
	if err := s.Log.DeleteRange(79, 81); err != nil {
		t.Fatal(err)
	}
	mustStore(t, s.Log, testEntries(79, 80)...)
	mustStore(t, s.Log, long)
	mustStore(t, s.Log, testEntries(82, 84)...)
	testwait.Until(t, "what was dropped to go", func() bool {
		list, errList := (&walMeta{dir: filepath.Join(f.path, walDirName)}).read()
		segments, err := filepath.Glob(filepath.Join(f.path, walDirName, "*.wal"))
		return errors.Join(err, errList) == nil && len(segments) == len(list.Segments)
	})
	if err := errors.Join(s.Close(), d.Close()); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Join(f.path, walDirName))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		f.files[e.Name()] = mustRead(t, filepath.Join(f.path, walDirName, e.Name()))
	}
	f.want = append(append(testEntries(1, 80), long), testEntries(82, 84)...)
	return f
}

// tryWith opens the log with one file changed (nil: gone) and reports whether it was refused. If
// it opens, it must read back what was written.
func (f walFolder) tryWith(t *testing.T, name string, content []byte) (refused bool) {
	t.Helper()
	dir := filepath.Join(f.path, walDirName)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, dataDirMode); err != nil {
		t.Fatal(err)
	}
	for n, b := range f.files {
		if n != name {
			mustWrite(t, filepath.Join(dir, n), b)
		} else if content != nil {
			mustWrite(t, filepath.Join(dir, n), content)
		}
	}
	d, err := OpenDir(f.path, "n1")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	s, err := Open(d, Config{Fatal: testFatal(t), SegmentBytes: 4 << 10})
	if err != nil {
		wantError(t, err, ErrCorruptLog, f.path, "claimq cluster remove")
		return true
	}
	wantLog(t, s.Log, f.want)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	return false
}

// A flipped bit anywhere in raft-wal's files, a truncated file, and a missing one either prevent
// the node from starting, or change nothing.
func TestWAL_NoticesDamage(t *testing.T) {
	t.Parallel()
	f := newWALFolder(t)
	if f.tryWith(t, "", nil) {
		t.Fatal("the log is refused as it is")
	}
	refused, intact, times := 0, 0, proof.Count(4, 1)
	count := func(no bool) {
		if no {
			refused++
		} else {
			intact++
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	for name, content := range f.files {
		if !f.tryWith(t, name, nil) {
			t.Errorf("%s is gone, and nobody notices", name)
		}
		used := len(bytes.TrimRight(content, "\x00"))
		for at := 0; at < used; at += 61 * times {
			count(f.tryWith(t, name, flipBit(content, at*8+at%8)))
		}
		for at := used + 7; at < len(content); at += 1997 * times {
			count(f.tryWith(t, name, flipBit(content, at*8+at%8)))
		}
		for at := used - 1; at > 0; at -= used/7 + 1 {
			count(f.tryWith(t, name, content[:at:at]))
		}
	}
	if refused == 0 || intact == 0 {
		t.Errorf("%d refused, %d without effect: the test does not look at both", refused, intact)
	}
	t.Logf("%d files: %d kinds of damage refused, %d without effect", len(f.files), refused, intact)
}

// Segments are filled with zeros before they are used, and one is kept ready.
func TestWALFS_SegmentsAreReady(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mustWrite(t, filepath.Join(dir, walSpareFileName), []byte("what a crash left"))
	v, err := newWALFS(dir, 3<<20, &walFailure{}, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		f, err := v.Create(dir, name, 3<<20)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if got := mustRead(t, filepath.Join(dir, name)); len(got) != 3<<20 || len(bytes.TrimRight(got, "\x00")) != 0 {
			t.Errorf("segment %s has %d bytes, or not only zeroes", name, len(got))
		}
	}
	if _, err := v.Create(dir, "a", 3<<20); !errors.Is(err, os.ErrExist) {
		t.Errorf("a segment that is there is made again: %v", err)
	}
	if err := v.close(); err != nil {
		t.Fatal(err)
	}
	if ok, err := fileExists(filepath.Join(dir, walSpareFileName)); ok || err != nil {
		t.Errorf("a spare is left: %v, %v", ok, err)
	}
}

// If the disk has no room for a segment, the failed attempt uses up none.
func TestWALFS_LeavesNothingOnAFullDisk(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), walSpareFileName)
	if err := os.Symlink("/dev/full", path); err != nil {
		t.Fatal(err)
	}
	if err := fillFile(path, 1<<10); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("fill: %v, want ENOSPC", err)
	}
	if ok, err := fileExists(path); ok || err != nil {
		t.Errorf("a part of it is left: %v, %v", ok, err)
	}
}

// An error in raft-wal's own goroutine is reported by the next append.
func TestWAL_TellsWhyItCannotGoOn(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "wal")
	if err := createWAL(path); err != nil {
		t.Fatal(err)
	}
	w, err := openWAL(path, 4<<10, 0, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := w.files.takeSpare(); err != nil { // otherwise it may be made meanwhile
		t.Fatal(err)
	}
	if err := os.RemoveAll(path); err != nil { // so that the next segment cannot be made
		t.Fatal(err)
	}
	for i := uint64(1); i <= 1000; i++ {
		if err := w.StoreLogs(testEntries(i, i)); err != nil {
			if !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the append fails with %v, want why no segment could be made", err)
			}
			return
		}
	}
	t.Error("1,000 entries went into a folder that is gone")
}

// A reader of an entry gets it while the front of the log is deleted, or learns that it is gone:
// never an error, which would end the node.
func TestWAL_ReadWhileTheFrontIsDeleted(t *testing.T) {
	t.Parallel()
	path := disktest.MemoryDir(t)
	if err := createWAL(path); err != nil {
		t.Fatal(err)
	}
	w, err := openWAL(path, 1<<10, 0, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				first, err := w.FirstIndex()
				if err == nil && first > 0 {
					err = w.GetLog(first, &raft.Log{})
				}
				if err != nil && !errors.Is(err, raft.ErrLogNotFound) {
					t.Errorf("entry %d: %v", first, err)
					return
				}
			}
		})
	}
	for i := uint64(1); i < 600; i += 8 {
		if err := w.StoreLogs(testEntries(i, i+7)); err != nil {
			t.Error(err)
			break
		}
		if err := w.DeleteRange(1, i-min(i, 16)); err != nil {
			t.Error(err)
			break
		}
	}
	close(stop)
	readers.Wait()
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// cuttingFS is a walFS with a segment that is dropped and truncated while it is read, as
// raft-wal lets happen to readers while it begins another segment.
type cuttingFS struct {
	*walFS
	cut func() // nil = none
}

func (v *cuttingFS) OpenReader(dir, name string) (types.ReadableFile, error) {
	f, err := v.walFS.OpenReader(dir, name)
	return &cutFile{f, v}, err
}

type cutFile struct {
	types.ReadableFile
	fs *cuttingFS
}

func (f *cutFile) ReadAt(b []byte, at int64) (int, error) {
	if f.fs.cut == nil {
		return f.ReadableFile.ReadAt(b, at)
	}
	f.fs.cut()
	return 0, io.EOF
}

// A reader of a segment that is being truncated learns that the entry is gone. A segment that is
// truncated but was not dropped is an error.
func TestWAL_ReadWhileASegmentIsCut(t *testing.T) {
	t.Parallel()
	path := disktest.MemoryDir(t)
	if err := createWAL(path); err != nil {
		t.Fatal(err)
	}
	w, err := openWAL(path, 1<<10, 0, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	for i := uint64(1); i <= 100; i++ {
		if err := w.StoreLogs(testEntries(i, i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	w, fs := openCuttingWAL(t, path)
	defer w.Close()
	fs.cut = func() {
		fs.cut = nil
		if err := w.DeleteRange(1, 89); err != nil {
			t.Error(err)
		}
	}
	if err := w.GetLog(1, &raft.Log{}); !errors.Is(err, raft.ErrLogNotFound) {
		t.Errorf("an entry that is gone: %v", err)
	}
	fs.cut = func() {}
	if err := w.GetLog(90, &raft.Log{}); !errors.Is(err, io.EOF) {
		t.Errorf("an entry that is damaged: %v", err)
	}
}

func openCuttingWAL(t *testing.T, path string) (*walStore, *cuttingFS) {
	t.Helper()
	files, err := newWALFS(path, 1<<10, &walFailure{}, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	fs := &cuttingFS{walFS: files}
	filer := segment.NewFiler(path, fs)
	meta := &walMeta{dir: path, filer: filer, size: 1 << 10, failure: files.failure}
	w, err := wal.Open(path, wal.WithMetaStore(meta), wal.WithSegmentFiler(filer), wal.WithSegmentSize(1<<10))
	if err != nil {
		t.Fatal(err)
	}
	return &walStore{WAL: w, files: files, failure: files.failure}, fs
}

// A segment is removed step by step: the log does without it at once, whenever the process ends,
// and nothing is left of it after the next start.
func TestWAL_SegmentsGoBitByBit(t *testing.T) {
	t.Parallel()
	const large = 16384 * removeStep // takes ten minutes
	path, open := smallWAL(t)
	w := open()
	for i := uint64(1); i <= 100; i++ {
		if err := w.StoreLogs(testEntries(i, i)); err != nil {
			t.Fatal(err)
		}
	}
	segments, err := filepath.Glob(filepath.Join(path, "*.wal"))
	if err != nil || len(segments) < 3 {
		t.Fatalf("%d segments, %v", len(segments), err)
	}
	oldest := segments[0]
	largeFile(t, oldest, large)
	check := func(w *walStore) {
		t.Helper()
		if first, err := w.FirstIndex(); err != nil || first != 90 {
			t.Errorf("the log begins at %d, %v", first, err)
		}
		for i := uint64(90); i <= 100; i++ {
			var log raft.Log
			if err := w.GetLog(i, &log); err != nil || !equalLogs(&log, testEntry(i)) {
				t.Errorf("entry %d: %+v, %v", i, log, err)
			}
		}
	}
	if err := w.DeleteRange(1, 89); err != nil {
		t.Fatal(err)
	}
	check(w)
	testwait.Until(t, "the first bytes to go", func() bool { return sizeOf(t, oldest) < large })
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if sizeOf(t, oldest) <= 0 {
		t.Fatal("it was removed at once")
	}
	largeFile(t, oldest, removeStep+1) // so that it does not take as long again
	w = open()
	defer w.Close()
	check(w)
	testwait.Until(t, "it to go", func() bool { return sizeOf(t, oldest) == -1 })
}
