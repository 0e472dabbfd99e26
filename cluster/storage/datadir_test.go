package storage

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/cluster/nodekey"
	"github.com/claimq/claimq/fsm"
)

func mustOpenDataDir(t *testing.T, path string) *Dir {
	t.Helper()
	d, err := OpenDir(path, "n1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// wantError checks that err is target and contains each of texts.
func wantError(t *testing.T, err, target error, texts ...string) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("got error %v, want %v", err, target)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("error %q does not say %q", err, text)
		}
	}
}

func TestDataDir_KeepsItsIdentity(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a", "b")
	d := mustOpenDataDir(t, path)
	id := d.Identity()
	if id.NodeID != "n1" || len(id.UUID) != 36 || id.UUID != nodekey.UUID(nodekey.Public(d.key)) || id.ClusterID != "" {
		t.Errorf("new identity: %+v", id)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("folder: %v, %v", info.Mode(), err)
	}
	if err := d.SetCluster("c1", nil); err != nil {
		t.Fatal(err)
	}
	want := d.Identity()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
	wantError(t, d.SetCluster("c2", nil), ErrClusterIDMismatch)

	d = mustOpenDataDir(t, path)
	got := d.Identity()
	got.CRC = want.CRC
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("after reopening (-want +got):\n%s", diff)
	}
	if got.ClusterID != "c1" || got.UUID != id.UUID {
		t.Errorf("after reopening: %+v", got)
	}
	if err := d.SetCluster("c1", nil); err != nil {
		t.Errorf("the same cluster id again: %v", err)
	}
	wantError(t, d.SetCluster("c2", nil), ErrClusterIDMismatch, "c1", "c2", path)
}

func TestDataDir_IsHeldByOneProcess(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	d := mustOpenDataDir(t, path)
	_, err := OpenDir(path, "n1")
	wantError(t, err, ErrDataDirInUse, path, fmt.Sprintf("pid %d", os.Getpid()), "another claimq process")
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	mustOpenDataDir(t, path)
}

func TestDataDir_RefusesAnotherNode(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	if err := mustOpenDataDir(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	_, err := OpenDir(path, "n2")
	wantError(t, err, ErrNodeIDMismatch, `"n1"`, `"n2"`, "--node-id n1", path)
	mustOpenDataDir(t, path) // the refusal released the lock
}

func TestDataDir_RefusesAnotherFormat(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Identity){
		"a newer format":  func(id *Identity) { id.Format = formatOf(fsm.FeatureLevel()) + 1 },
		"no format":       func(id *Identity) { id.Format = 0 },
		"an older format": func(id *Identity) { id.Format = 4 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := t.TempDir()
			d := mustOpenDataDir(t, path)
			id := d.Identity()
			change(&id)
			if err := errors.Join(writeIdentity(path, id), d.Close()); err != nil {
				t.Fatal(err)
			}
			_, err := OpenDir(path, "n1")
			wantError(t, err, ErrFormatMismatch, path)
		})
	}
}

// TestDataDir_FormatFollowsTheLevel ensures that a folder refuses binaries that do not know
// its cluster's feature level, and no others.
func TestDataDir_FormatFollowsTheLevel(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	d := mustOpenDataDir(t, path)
	for _, step := range []struct {
		level  uint32
		format int
	}{{0, 14}, {1, 14}, {2, 15}, {1, 15}, {99, 112}} {
		if err := d.SetLevel(step.level); err != nil {
			t.Fatal(err)
		}
		if got := d.Identity().Format; got != step.format {
			t.Errorf("level %d: format %d, want %d", step.level, got, step.format)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := OpenDir(path, "n1")
	wantError(t, err, ErrFormatMismatch, path, "format 112", "newer one")
}

func TestDataDir_NoticesEachFlippedBitOfTheIdentity(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	d := mustOpenDataDir(t, path)
	want := d.Identity()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(path, IdentityFile)
	intact := mustRead(t, file)
	for bit := range len(intact) * 8 {
		got, err := parseIdentity(flipBit(intact, bit))
		got.CRC = want.CRC
		if err == nil && !cmp.Equal(got, want) {
			t.Fatalf("bit %d: read %+v", bit, got)
		}
	}
	mustWrite(t, file, bytes.Replace(intact, []byte(`"n1"`), []byte(`"n3"`), 1))
	_, err := OpenDir(path, "n3")
	wantError(t, err, ErrCorruptIdentity, file, "--join")
}

func TestDataDir_RefusesALogWithoutIdentity(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	mustWrite(t, filepath.Join(path, logFileName), nil)
	_, err := OpenDir(path, "n1")
	wantError(t, err, ErrCorruptIdentity, IdentityFile, "missing")
}

func TestDataDir_RefusesAFileInItsPlace(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	mustWrite(t, file, []byte("x"))
	_, err := OpenDir(file, "n1")
	wantError(t, err, ErrDataDir, "is a file", "--data-dir")
	_, err = OpenDir(filepath.Join(file, "below"), "n1")
	wantError(t, err, ErrDataDir, "--data-dir")
}

func TestDataDir_RefusesAFolderItCannotWrite(t *testing.T) {
	t.Parallel()
	// Not even root can create files in /proc.
	_, err := OpenDir("/proc/self/fdinfo", "n1")
	wantError(t, err, ErrDataDir, "/proc/self/fdinfo")
}

func TestDataDirError_SaysWhatToDo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		errno  syscall.Errno
		target error
		text   string
	}{
		{syscall.EROFS, ErrDataDir, "mount it writable"},
		{syscall.EACCES, ErrDataDir, "the right to read and write"},
		{syscall.EPERM, ErrDataDir, "the right to read and write"},
		{syscall.ENOSPC, ErrDiskFull, "free some space"},
		{syscall.EDQUOT, ErrDiskFull, "free some space"},
		{syscall.EIO, ErrDataDir, "--data-dir"},
	} {
		err := DirError("/data", &os.PathError{Op: "open", Path: "/data/x", Err: c.errno})
		wantError(t, err, c.target, "/data", c.text)
		wantError(t, err, c.errno)
	}
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func mustWrite(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func flipBit(b []byte, bit int) []byte {
	flipped := append([]byte(nil), b...)
	flipped[bit/8] ^= 1 << (bit % 8)
	return flipped
}
