package disktest

import (
	"os"
	"testing"
)

// MemoryDir creates a folder in memory if there is such a file system: for tests that write
// much, and do not test the disk itself. It is removed when the test ends.
func MemoryDir(t testing.TB) string {
	t.Helper()
	parent := "/dev/shm"
	if _, err := os.Stat(parent); err != nil {
		parent = os.TempDir()
	}
	dir, err := os.MkdirTemp(parent, "claimq-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
