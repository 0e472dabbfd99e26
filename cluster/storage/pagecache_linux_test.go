package storage

import (
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// residentPages returns the number of the file's pages in memory.
func residentPages(t *testing.T, path string) (count int) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	mapped, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(mapped) }()
	pages := make([]byte, (len(mapped)+os.Getpagesize()-1)/os.Getpagesize())
	if _, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&mapped[0])), uintptr(len(mapped)), uintptr(unsafe.Pointer(&pages[0]))); errno != 0 {
		t.Fatal(errno)
	}
	for _, page := range pages {
		count += int(page & 1)
	}
	return count
}

// No written or read pages are left in memory, on disk or not.
func TestReadFromDisk_dropsWhatIsInMemory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "wal", "segment")
	if err := os.Mkdir(filepath.Dir(path), dataDirMode); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, make([]byte, 1<<20), dataFileMode); err != nil {
		t.Fatal(err)
	}
	if n := residentPages(t, path); n == 0 {
		t.Fatal("nothing is in memory after a write: the test shows nothing")
	}
	if err := ReadFromDisk(dir); err != nil {
		t.Fatal(err)
	}
	var system unix.Statfs_t
	if err := unix.Statfs(dir, &system); err != nil {
		t.Fatal(err)
	}
	if n := residentPages(t, path); n != 0 && system.Type != unix.TMPFS_MAGIC { // tmpfs has no disk
		t.Errorf("%d pages are still in memory", n)
	}
}
