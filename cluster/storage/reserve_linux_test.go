package storage

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/internal/testwait"
)

// fewInodes mounts a file system with few inodes for the test.
func fewInodes(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("this test mounts a file system: run it as root")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64m,nr_inodes=120"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) }) // lazily, because its process ends after this
	return dir
}

// takeInodes creates empty files in the folder until no inode is left.
func takeInodes(t *testing.T, dir string) {
	t.Helper()
	for {
		f, err := os.CreateTemp(dir, "others-")
		if noRoom(err) {
			return
		}
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// Without a free inode the log grows by more segments than the reserve has, as long as it is
// truncated after snapshots, and the files that a node writes about itself and others are written.
// So it continues after another start.
func TestReserve(t *testing.T) {
	t.Parallel()
	disk := fewInodes(t)
	path := filepath.Join(disk, "data")
	b := openTestStores(t, path, Config{SegmentBytes: 4 << 10})
	mustStore(t, b.Log, testEntries(1, 10)...)
	FillReserve(path)
	last := uint64(10)
	for round := range 8 {
		takeInodes(t, disk)
		for range 30 * 4 { // more than a segment holds
			last++
			mustStore(t, b.Log, testEntry(last))
		}
		takeSnapshot(t, b, last, fmt.Sprint("the state of ", round))
		first, err := b.Log.FirstIndex()
		if err != nil {
			t.Fatal(err)
		}
		mustDelete(t, b.Log, first, last-20)
		testwait.Until(t, "what was dropped to go", func() bool {
			segments, err := filepath.Glob(filepath.Join(path, walDirName, "*.wal"))
			return err == nil && len(segments) <= 4 && len(snapshotFolders(t, b)) <= snapshotsRetained
		})
		starts, err := OpenStarts(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := starts.Note("another", Start{Number: uint64(round) + 1}); err != nil {
			t.Fatal(err)
		}
		b.close(t)
		if err := b.dir.Close(); err != nil {
			t.Fatal(err)
		}
		takeInodes(t, disk)
		b = openTestStores(t, path, Config{SegmentBytes: 4 << 10})
		if err := b.dir.BeginStart(); err != nil {
			t.Fatal(err)
		}
	}
	var newest raft.Log
	if err := b.Log.GetLog(last, &newest); err != nil || !equalLogs(&newest, testEntry(last)) {
		t.Errorf("the newest entry: %+v, %v", newest, err)
	}
}

// The reserve takes inodes that become free, and those of files that are not needed; it never has
// more than it should.
func TestReserve_fills(t *testing.T) {
	t.Parallel()
	disk := fewInodes(t)
	r := reserveOf(disk)
	FillReserve(disk)
	if n := len(r.missing()); n != 0 {
		t.Fatalf("%d files are missing", n)
	}
	old := filepath.Join(disk, "old")
	mustWrite(t, old, []byte("old"))
	takeInodes(t, disk)
	if err := r.give(old); err != nil {
		t.Fatal(err)
	}
	if exists, err := fileExists(old); exists || err != nil {
		t.Errorf("what a full reserve was given is there: %v", err)
	}
	mustWrite(t, filepath.Join(r.dir, "0"), []byte("an entry")) // also in use, and a crash brought this name back
	inUse, err := os.Open(filepath.Join(r.dir, "0"))
	if err != nil {
		t.Fatal(err)
	}
	takeInodes(t, disk)
	made := filepath.Join(disk, "made")
	if err := r.at(made, func() error { return os.WriteFile(made, []byte("new"), dataFileMode) }); err != nil {
		t.Fatal(err)
	}
	if n := len(r.missing()); n != 2 {
		t.Errorf("%d files are missing", n)
	}
	FillReserve(disk) // finds nothing
	if got, err := io.ReadAll(inUse); string(got) != "an entry" || errors.Join(err, inUse.Close()) != nil {
		t.Errorf("the file that is in use has %q, %v", got, err)
	}
	if err := r.give(made); err != nil {
		t.Fatal(err)
	}
	FillReserve(disk) // with the inode of the other one
	for i := range reserveFiles {
		if info, err := os.Stat(filepath.Join(r.dir, fmt.Sprint(i))); err != nil || info.Size() != 0 {
			t.Errorf("file %d: %v, %v", i, info, err)
		}
	}
	if !r.free(reserveFiles) || r.free(1) {
		t.Error("it has more files, or less")
	}
	FillReserve(disk)
	if n := len(r.missing()); n != 0 {
		t.Errorf("%d files are missing", n)
	}
	wantError(t, storageError(disk, "write", syscall.ENOSPC), ErrDiskFull, "no inode is left")
	r.free(1)
	wantError(t, DirError(disk, syscall.ENOSPC), ErrDiskFull, "free some space")
}
