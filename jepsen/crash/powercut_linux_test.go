package crash

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/claimq/claimq/cluster/storage"
	"github.com/claimq/claimq/jepsen/lossyfs"
)

// lossyDisk mounts a disk for the test, which must not map its files into memory, so it
// cannot use bbolt.
func lossyDisk(t *testing.T) *lossyfs.FS {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("this test mounts a FUSE file system: run it as root")
	}
	f, err := lossyfs.New(filepath.Join(t.TempDir(), "disk"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// losePower cuts the power, and restores it.
func losePower(t *testing.T, f *lossyfs.FS) {
	t.Helper()
	f.Cut(nil)
	if err := f.Restore(); err != nil {
		t.Fatal(err)
	}
}

// A folder that was created together with those above it survives a loss of power, however
// many they are.
func TestDataDir_IsDurableWithThoseAboveIt(t *testing.T) {
	t.Parallel()
	f := lossyDisk(t)
	path := filepath.Join(f.Dir(), "var", "lib", "claimq", "data")
	d, err := storage.OpenDir(path, "n1")
	if err != nil {
		t.Fatal(err)
	}
	before := d.Identity().UUID
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	losePower(t, f)
	d, err = storage.OpenDir(path, "n1")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if got := d.Identity().UUID; got != before {
		t.Errorf("the node is %s after a loss of power, and was %s", got, before)
	}
}

// The names of files that a start finds are on the disk, too: a process that was killed may
// have renamed a snapshot, and the next one deletes the log because of it.
func TestReadFromDisk_namesAreOnDisk(t *testing.T) {
	t.Parallel()
	f := lossyDisk(t)
	snapshots := filepath.Join(f.Dir(), "snapshots")
	name := filepath.Join(snapshots, "1-2-3")
	state := filepath.Join(name, "state.bin")
	err := errors.Join(
		os.MkdirAll(name+".tmp", 0o700), syncDir(f.Dir()), syncDir(snapshots),
		os.Rename(name+".tmp", name), os.WriteFile(state, []byte("state"), 0o600),
		storage.ReadFromDisk(f.Dir()),
	)
	if err != nil {
		t.Fatal(err)
	}
	losePower(t, f)
	if b, err := os.ReadFile(state); err != nil || string(b) != "state" {
		t.Errorf("the snapshot is %q, %v", b, err)
	}
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
