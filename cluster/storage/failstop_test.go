package storage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

// fakeBolt is a store in memory on a disk that can fail.
type fakeBolt struct {
	*raft.InmemStore
	writes int
	before func(op string) error // nil: no errors
}

func newFakeBolt() *fakeBolt { return &fakeBolt{InmemStore: raft.NewInmemStore()} }

func (b *fakeBolt) fault(op string) error {
	b.writes++
	if b.before == nil {
		return nil
	}
	return b.before(op)
}

func (b *fakeBolt) StoreLogs(logs []*raft.Log) error {
	if err := b.fault("StoreLogs"); err != nil {
		return err
	}
	return b.InmemStore.StoreLogs(logs)
}

func (b *fakeBolt) DeleteRange(lo, hi uint64) error {
	if err := b.fault("DeleteRange"); err != nil {
		return err
	}
	return b.InmemStore.DeleteRange(lo, hi)
}

func (b *fakeBolt) Set(key, val []byte) error {
	if err := b.fault("Set"); err != nil {
		return err
	}
	return b.InmemStore.Set(key, val)
}

func (b *fakeBolt) Close() error { return nil }

// faultBench is a log and a stable store over a fakeBolt.
type faultBench struct {
	bolt   *fakeBolt
	log    *Log
	stable *stableStore
	guard  *failStop
	fatals atomic.Int32
	fatal  error
}

func newFaultBench(t *testing.T) *faultBench {
	t.Helper()
	dir := t.TempDir()
	if err := createTail(dir); err != nil {
		t.Fatal(err)
	}
	tail, err := openTail(dir)
	if err != nil {
		t.Fatal(err)
	}
	b := &faultBench{bolt: newFakeBolt()}
	b.guard = newFailStop(func(err error) { b.fatal = err; b.fatals.Add(1) }, slowCallMaxDefault)
	path := filepath.Join(dir, logFileName)
	b.log = newLog(path, b.bolt, tail, b.guard, logSummary{}, Config{CacheBytesMax: 1 << 20})
	b.stable = &stableStore{bolt: b.bolt, guard: b.guard, path: path}
	t.Cleanup(func() { b.guard.close(); _ = tail.close() })
	return b
}

func TestFailStop_EndsTheProcessAtTheFirstFailedWrite(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(b *faultBench) error{
		"append": func(b *faultBench) error { return b.log.StoreLogs(testEntries(2, 3)) },
		"delete": func(b *faultBench) error { return b.log.DeleteRange(1, 1) },
		"vote":   func(b *faultBench) error { return b.stable.Set([]byte("k"), []byte("v")) },
		"term":   func(b *faultBench) error { return b.stable.SetUint64([]byte("k"), 1) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFaultBench(t)
			mustStore(t, b.log, testEntries(1, 1)...)
			b.bolt.writes = 0
			b.bolt.before = func(op string) error { return &os.PathError{Op: "fdatasync", Path: "raft.db", Err: syscall.EIO} }
			wantError(t, write(b), syscall.EIO, "check the disk")
			wantError(t, b.fatal, ErrStorageFailed, "raft.db")

			b.bolt.before = nil // a second fsync would succeed
			wantError(t, write(b), ErrStorageFailed, "earlier failure")
			wantError(t, b.log.GetLog(9, new(raft.Log)), ErrStorageFailed)
			if b.bolt.writes != 1 || b.fatals.Load() != 1 {
				t.Errorf("%d writes, %d fatals, want one of each", b.bolt.writes, b.fatals.Load())
			}
		})
	}
}

func TestFailStop_SaysThatTheDiskIsFull(t *testing.T) {
	t.Parallel()
	b := newFaultBench(t)
	b.bolt.before = func(string) error { return &os.PathError{Op: "write", Path: "raft.db", Err: syscall.ENOSPC} }
	wantError(t, b.log.StoreLogs(testEntries(1, 1)), ErrDiskFull)
	wantError(t, b.fatal, ErrDiskFull, "free some space", filepath.Dir(b.log.path), "start this node again")
}

func TestFailStop_TakesAPanicForDamage(t *testing.T) {
	t.Parallel()
	b := newFaultBench(t)
	b.bolt.before = func(string) error { panic("page 7: unexpected type") }
	wantError(t, b.log.StoreLogs(testEntries(1, 1)), ErrCorruptLog, "page 7")
	wantError(t, b.fatal, ErrCorruptLog)
}

func TestFailStop_LetsNotFoundThrough(t *testing.T) {
	t.Parallel()
	b := openTestStores(t, t.TempDir(), Config{}) // its Fatal fails the test
	if err := b.Log.GetLog(1, new(raft.Log)); !errors.Is(err, raft.ErrLogNotFound) {
		t.Errorf("missing entry: %v", err)
	}
	if _, err := b.Stable.GetUint64([]byte("k")); err == nil || err.Error() != "not found" {
		t.Errorf("missing key: %v", err)
	}
	mustStore(t, b.Log, testEntries(1, 1)...)
}

func TestFailStop_EndsTheProcessWhenACallHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newFaultBench(t)
		release := make(chan struct{})
		b.bolt.before = func(string) error { <-release; return nil }
		done := make(chan error)
		go func() { done <- b.log.StoreLogs(testEntries(1, 1)) }()

		<-time.After(slowCallMaxDefault - time.Second)
		synctest.Wait()
		if b.fatals.Load() != 0 {
			t.Fatalf("too early: %v", b.fatal)
		}
		<-time.After(time.Second + slowCallMaxDefault/8)
		synctest.Wait()
		if b.fatals.Load() != 1 {
			t.Fatalf("%d fatals", b.fatals.Load())
		}
		wantError(t, b.fatal, ErrStorageFailed, "append to the log", "no answer for")
		<-time.After(time.Minute)
		synctest.Wait()
		close(release)
		<-done
		if b.fatals.Load() != 1 {
			t.Errorf("%d fatals", b.fatals.Load())
		}
	})
}

// A process that stands still in the middle of a call does not end because of that, no
// matter for how long: only completed looks at the call count, and all missed ones count as
// one. A disk that hangs at the same time is noticed all the same.
func TestFailStop_ForgivesTimeInWhichTheProcessStoodStill(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		looks := make(chan time.Time)
		var fatals atomic.Int32
		guard := newFailStopLooking(func(error) { fatals.Add(1) }, looks)
		defer guard.close()
		const interval = slowCallMaxDefault / looksPerSlowMax
		release := make(chan struct{})
		done := make(chan error)
		go func() {
			done <- guard.do("append to the log", nil, func() error { <-release; return nil })
		}()
		synctest.Wait()

		<-time.After(12 * time.Second) // stopped
		looks <- time.Now()
		<-time.After(time.Hour) // and suspended
		looks <- time.Now()
		synctest.Wait()
		if fatals.Load() != 0 {
			t.Error("the process ended for time in which it stood still")
		}
		for range looksPerSlowMax {
			<-time.After(interval)
			looks <- time.Now()
		}
		synctest.Wait()
		if fatals.Load() != 1 {
			t.Errorf("%d fatals at a call that hangs, want 1", fatals.Load())
		}
		close(release)
		<-done
	})
}

// Many quick calls are not one slow call.
func TestFailStop_TimesEachCallAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newFaultBench(t)
		b.bolt.before = func(string) error { <-time.After(slowCallMaxDefault / 2); return nil }
		for i := uint64(1); i <= 10; i++ {
			mustStore(t, b.log, testEntry(i))
		}
		if b.fatals.Load() != 0 {
			t.Errorf("fatal: %v", b.fatal)
		}
	})
}

func TestStorageError_NamesTheFolder(t *testing.T) {
	t.Parallel()
	err := storageError("/data", "append", fmt.Errorf("bolt: %w", syscall.EROFS))
	wantError(t, err, ErrDataDir, "/data", "read-only")
	if strings.Count(err.Error(), "/data") == 0 {
		t.Error(err)
	}
}
