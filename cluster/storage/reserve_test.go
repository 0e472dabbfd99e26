package storage

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// onFullDisk returns a function that writes a file, unless that needs a new inode.
func onFullDisk(path string, content []byte) func() error {
	return func() error {
		if exists, err := fileExists(path); err != nil || !exists {
			return errors.Join(err, syscall.ENOSPC)
		}
		return os.WriteFile(path, content, dataFileMode)
	}
}

// wantFilled checks that the reserve has all its files, and that they are empty.
func wantFilled(t *testing.T, r reserve) {
	t.Helper()
	for i := range reserveFiles {
		if info, err := os.Stat(filepath.Join(r.dir, fmt.Sprint(i))); err != nil || info.Size() != 0 {
			t.Errorf("file %d: %v, %v", i, info, err)
		}
	}
}

// A file that needs an inode on a full disk gets one of the reserve's, but not that of a file with
// content. The reserve is filled again at once.
func TestReserve_at(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := reserveOf(dir)
	FillReserve(dir)
	wantFilled(t, r)
	first, second := filepath.Join(r.dir, "0"), filepath.Join(r.dir, "1")
	mustWrite(t, first, []byte("an entry")) // also in use, and a crash brought this name back
	inUse, err := os.Open(first)
	if err != nil {
		t.Fatal(err)
	}
	spare, err := os.Stat(second)
	if err != nil {
		t.Fatal(err)
	}
	made := filepath.Join(dir, "made")
	if err := r.at(made, onFullDisk(made, []byte("new"))); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(made); err != nil || !os.SameFile(info, spare) || info.Size() != 3 {
		t.Errorf("the new file is %v, %v", info, err)
	}
	if got, err := io.ReadAll(inUse); string(got) != "an entry" || errors.Join(err, inUse.Close()) != nil {
		t.Errorf("the file that is in use has %q, %v", got, err)
	}
	wantFilled(t, r)
	broken := errors.New("broken")
	if err := r.at(made, func() error { return broken }); !errors.Is(err, broken) {
		t.Errorf("an error for another reason: %v", err)
	}
}

// The reserve takes files that are not needed any more, empty, but never has more than it should.
func TestReserve_give(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := reserveOf(dir)
	FillReserve(dir)
	old := filepath.Join(dir, "old")
	for missing := range 2 {
		mustWrite(t, old, []byte("old"))
		if !r.free(missing) || len(r.missing()) != missing {
			t.Fatalf("%d files are missing, want %d", len(r.missing()), missing)
		}
		if err := r.give(old); err != nil {
			t.Fatal(err)
		}
		if exists, err := fileExists(old); exists || err != nil {
			t.Errorf("with %d files missing, what the reserve was given is still there: %v", missing, err)
		}
		wantFilled(t, r)
	}
	if !r.free(reserveFiles) || r.free(1) {
		t.Error("it has more files, or less")
	}
	if err := r.at(old, onFullDisk(old, nil)); !noRoom(err) {
		t.Errorf("an empty reserve: %v", err)
	}
}
