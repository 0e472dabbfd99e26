package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/storage"
	"github.com/claimq/claimq/internal/testwait"
)

// fullDisk is a data folder on a file system whose inodes other programs take.
type fullDisk struct {
	t      *testing.T
	disk   string
	dir    *storage.Dir
	stores *storage.Stores
	last   uint64 // index of the newest entry
}

// newFullDisk mounts the file system for the test.
func newFullDisk(t *testing.T) *fullDisk {
	t.Helper()
	needRoot(t)
	d := &fullDisk{t: t, disk: t.TempDir()}
	if err := syscall.Mount("tmpfs", d.disk, "tmpfs", 0, "size=64m,nr_inodes=120"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(d.disk, syscall.MNT_DETACH) }) // lazily, because its process ends after this
	return d
}

func (d *fullDisk) path() string { return filepath.Join(d.disk, "data") }

func (d *fullDisk) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

// open opens the stores with small segments.
func (d *fullDisk) open() {
	d.t.Helper()
	var err error
	d.dir, err = storage.OpenDir(d.path(), "n1")
	d.must(err)
	d.stores, err = storage.Open(d.dir, storage.Config{SegmentBytes: 4 << 10, Fatal: func(err error) { d.t.Error(err) }})
	d.must(err)
}

func (d *fullDisk) close() {
	d.t.Helper()
	d.must(errors.Join(d.stores.Close(), d.dir.Close()))
}

// entry returns the log entry for the index.
func entry(index uint64) *raft.Log {
	return &raft.Log{Index: index, Term: 1, Type: raft.LogCommand, Data: fmt.Appendf(nil, "%0*d", 40+index%200, index)}
}

// write appends entries to the log.
func (d *fullDisk) write(count int) {
	d.t.Helper()
	for range count {
		d.last++
		d.must(d.stores.Log.StoreLog(entry(d.last)))
	}
}

// snapshot writes a snapshot and drops most of the log.
func (d *fullDisk) snapshot() {
	d.t.Helper()
	_, transport := raft.NewInmemTransport("")
	servers := raft.Configuration{Servers: []raft.Server{{ID: "uuid", Address: "n1"}}}
	sink, err := d.stores.Snapshots.Create(raft.SnapshotVersionMax, d.last, 1, servers, 1, transport)
	d.must(err)
	_, err = fmt.Fprint(sink, "the state at ", d.last)
	d.must(errors.Join(err, sink.Close()))
	first, err := d.stores.Log.FirstIndex()
	d.must(err)
	d.must(d.stores.Log.DeleteRange(first, d.last-20))
	testwait.Until(d.t, "what was dropped to go", func() bool { return d.count("wal/*.wal") <= 4 && d.count("snapshots/*") <= 2 })
}

func (d *fullDisk) count(pattern string) int {
	d.t.Helper()
	files, err := filepath.Glob(filepath.Join(d.path(), pattern))
	d.must(err)
	return len(files)
}

// Without a free inode the log grows by more segments than the reserve has, while it is
// truncated after snapshots, and the files that a node writes about itself and others are written.
// So it continues after another start.
func TestReserve(t *testing.T) {
	t.Parallel()
	d := newFullDisk(t)
	d.open()
	d.write(10)
	storage.FillReserve(d.path())
	for round := range 8 {
		takeInodes(t, d.disk)
		d.write(30 * 4) // more than a segment holds
		d.snapshot()
		starts, err := storage.OpenStarts(d.path())
		d.must(err)
		_, err = starts.Note("another", storage.Start{Number: uint64(round) + 1})
		d.must(err)
		d.close()
		takeInodes(t, d.disk)
		d.open()
		d.must(d.dir.BeginStart())
	}
	defer d.close()
	var newest raft.Log
	d.must(d.stores.Log.GetLog(d.last, &newest))
	if want := entry(d.last); string(newest.Data) != string(want.Data) {
		t.Errorf("the newest entry is %q, want %q", newest.Data, want.Data)
	}
	takeInodes(t, d.disk)
	advice := func() string { return storage.DirError(d.path(), syscall.ENOSPC).Error() }
	if got := advice(); !strings.Contains(got, "no inode is left") {
		t.Errorf("without a free inode the advice is %q", got)
	}
	storage.FillReserve(d.path()) // finds none
	if err := syscall.Mount("", d.disk, "", syscall.MS_REMOUNT, "nr_inodes=200"); err != nil {
		t.Fatal(err)
	}
	if got := advice(); !strings.Contains(got, "free some space") {
		t.Errorf("with free inodes the advice is %q", got)
	}
}
