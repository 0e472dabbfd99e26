package storage

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/claimq/claimq/internal/testwait"
)

// largeFile creates a file of that size, which takes no room on the disk.
func largeFile(t *testing.T, path string, size int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, dataFileMode)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// sizeOf returns the size of the file, or -1 if it does not exist.
func sizeOf(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if os.IsNotExist(err) {
		return -1
	}
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// A file is removed step by step with pauses, also in a folder, one after the other.
func TestRemover_goesInSteps(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		folder := filepath.Join(dir, "folder")
		if err := os.Mkdir(folder, dataDirMode); err != nil {
			t.Fatal(err)
		}
		first, second := filepath.Join(folder, "first"), filepath.Join(dir, "second")
		largeFile(t, first, 3*removeStep+1)
		largeFile(t, second, 2*removeStep)
		r := newRemover(1, os.RemoveAll, hclog.NewNullLogger())
		defer r.close()
		r.remove(folder)
		synctest.Wait()
		r.remove(second)
		for i, want := range [][2]int64{
			{3 * removeStep, 2 * removeStep},
			{2 * removeStep, 2 * removeStep},
			{1 * removeStep, 2 * removeStep},
			{-1, 2 * removeStep},
			{-1, removeStep},
			{-1, -1},
		} {
			if got := [2]int64{sizeOf(t, first), sizeOf(t, second)}; got != want {
				t.Fatalf("after %d pauses the files have %d bytes, want %d", i, got, want)
			}
			<-time.After(removePause)
			synctest.Wait()
		}
		if ok, err := fileExists(folder); ok || err != nil {
			t.Errorf("the folder is left: %v, %v", ok, err)
		}
	})
}

// The number of waiting files is bounded: a further one is removed at once.
func TestRemover_isBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var paths [3]string
		r := newRemover(1, os.RemoveAll, hclog.NewNullLogger())
		defer r.close()
		for i := range paths {
			paths[i] = filepath.Join(dir, string(rune('a'+i)))
			largeFile(t, paths[i], 1000*removeStep)
			r.remove(paths[i])
			synctest.Wait()
		}
		for i, want := range []int64{999 * removeStep, 1000 * removeStep, -1} {
			if got := sizeOf(t, paths[i]); got != want {
				t.Errorf("file %d has %d bytes, want %d", i, got, want)
			}
		}
	})
}

// Closing does not wait for the remaining files, and a file that cannot be removed stops
// nothing.
func TestRemover_ends(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		large, small := filepath.Join(dir, "large"), filepath.Join(dir, "small")
		largeFile(t, large, 1000*removeStep)
		largeFile(t, small, 1)
		r := newRemover(2, os.RemoveAll, hclog.NewNullLogger())
		r.remove(filepath.Join(dir, "missing"))
		r.remove(small)
		synctest.Wait()
		<-time.After(removePause)
		r.remove(large)
		<-time.After(removePause)
		synctest.Wait()
		r.close()
		if got := [2]int64{sizeOf(t, small), sizeOf(t, large)}; got != [2]int64{-1, 999 * removeStep} {
			t.Errorf("the files have %d bytes", got)
		}
	})
}

// A file that cannot be truncated is removed all the same: here a running program.
func TestRemover_removesWhatItCannotCut(t *testing.T) {
	t.Parallel()
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "program")
	mustWrite(t, path, mustRead(t, sleep))
	largeFile(t, path, removeStep+1)
	if err := os.Chmod(path, 0o700); err != nil {
		t.Fatal(err)
	}
	running := exec.CommandContext(t.Context(), path, "3600")
	if err := running.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = running.Process.Kill()
		_ = running.Wait() // it was killed
	}()
	if err := os.Truncate(path, removeStep); !errors.Is(err, syscall.ETXTBSY) {
		t.Fatalf("it can be cut: %v", err)
	}
	r := newRemover(1, os.RemoveAll, hclog.NewNullLogger())
	defer r.close()
	r.remove(path)
	testwait.Until(t, "it to go", func() bool { return sizeOf(t, path) == -1 })
}
