package storage

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/storage/disktest"
)

func command(index uint64) *raft.Log {
	return &raft.Log{Index: index, Term: 2, Type: raft.LogCommand, Data: fmt.Append(nil, "entry ", index)}
}

// gatedBench is a leader's log with one entry, whose disk is held up until open is called.
type gatedBench struct {
	*faultBench
	disk  *disktest.GatedLog
	leads atomic.Bool
	open  func()
}

func newGatedBench(t *testing.T) *gatedBench {
	t.Helper()
	b := &gatedBench{faultBench: newFaultBench(t)}
	b.disk = &disktest.GatedLog{LogStore: b.bolt}
	b.log.disk = b.disk
	b.log.LedBy(b.leads.Load)
	if err := b.log.StoreLog(command(1)); err != nil {
		t.Fatal(err)
	}
	b.leads.Store(true)
	b.open = b.disk.Hold()
	return b
}

// begin calls fn in a goroutine. ended reports, once everything is idle, whether it has
// ended, and its error.
func begin(fn func() error) (ended func() (bool, error)) {
	done := make(chan error, 1)
	go func() { done <- fn() }()
	return func() (bool, error) {
		synctest.Wait()
		select {
		case err := <-done:
			done <- err
			return true, err
		default:
			return false, nil
		}
	}
}

// Entries that a leader appends can be sent at once, and count as stored when they are on
// disk.
func TestLogStore_leaderAppends(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newGatedBench(t)
		defer b.guard.close()
		l := b.log
		if err := l.StoreLogs([]*raft.Log{command(2), command(3)}); err != nil {
			t.Fatal(err)
		}
		if err := l.StoreLog(command(4)); err != nil {
			t.Fatal(err)
		}
		var got raft.Log
		if err := l.GetLog(3, &got); err != nil || string(got.Data) != "entry 3" {
			t.Errorf("entry 3 is %q, %v", got.Data, err)
		}
		if last, _ := l.LastIndex(); last != 4 {
			t.Errorf("the last entry is %d", last)
		}
		for index, want := range map[uint64]uint64{1: 1, 2: 1, 4: 1} {
			if got := l.Stored(index); got != want {
				t.Errorf("of %d, %d are stored, want %d", index, got, want)
			}
		}
		if err := l.AwaitStored(1); err != nil {
			t.Error(err)
		}
		l.cache.deleteRange(1, 4) // it would have to be read from the disk
		if got := l.LastCommand(4); got != 4 {
			t.Errorf("the last command up to 4 is %d", got)
		}
		stored := begin(func() error { return l.AwaitStored(3) })
		if done, _ := stored(); done {
			t.Error("entry 3 is said to be stored, the disk has not got it")
		}
		b.open()
		if done, err := stored(); !done || err != nil || l.Stored(4) != 4 {
			t.Errorf("the disk has all, and awaiting it ended: %v, %v; stored %d of 4", done, err, l.Stored(4))
		}
		if err := b.disk.GetLog(4, &got); err != nil {
			t.Error(err)
		}
	})
}

// A node that does not lead waits for its disk before it reads or appends, and a leader for
// entries that are not commands, before it cuts off the end of the log, when the cache lacks
// an entry, and when too much is under way.
func TestLogStore_waitsForDisk(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(l *Log, leads *atomic.Bool) error{
		"a follower reads": func(l *Log, leads *atomic.Bool) error {
			leads.Store(false)
			return l.GetLog(2, &raft.Log{})
		},
		"a follower appends": func(l *Log, leads *atomic.Bool) error {
			leads.Store(false)
			return l.StoreLog(command(3))
		},
		"a leader appends a configuration": func(l *Log, _ *atomic.Bool) error {
			return l.StoreLogs([]*raft.Log{command(3), {Index: 4, Term: 2, Type: raft.LogConfiguration}})
		},
		"the end is cut off": func(l *Log, _ *atomic.Bool) error { return l.DeleteRange(2, 2) },
		"an entry that is in no cache": func(l *Log, _ *atomic.Bool) error {
			l.cache.deleteRange(1, 2)
			return l.GetLog(2, &raft.Log{})
		},
		"too much is under way": func(l *Log, _ *atomic.Bool) error {
			for n := range uint64(unstoredMax) {
				if err := l.StoreLog(command(3 + n)); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newGatedBench(t)
				defer b.guard.close()
				if err := b.log.StoreLog(command(2)); err != nil {
					t.Fatal(err)
				}
				ended := begin(func() error { return do(b.log, &b.leads) })
				if done, err := ended(); done {
					t.Errorf("it does not wait for the disk: %v", err)
				}
				if n := b.disk.Waiting(); n != 1 {
					t.Errorf("%d appends are at the disk at once", n)
				}
				b.open()
				if done, err := ended(); !done || err != nil {
					t.Errorf("the disk has all, and it ended: %v, %v", done, err)
				}
				b.log.unstored.close()
			})
		})
	}
}

// A write that fails ends the node once, and nothing after it is stored.
func TestLogStore_leaderAppendFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newGatedBench(t)
		defer b.guard.close()
		l := b.log
		if err := l.StoreLog(command(2)); err != nil {
			t.Fatal(err)
		}
		b.bolt.before = func(string) error { return errors.New("the disk is gone") }
		b.open()
		if err := l.AwaitStored(2); !errors.Is(err, ErrStorageFailed) {
			t.Errorf("await: %v", err)
		}
		if err := l.StoreLog(command(3)); !errors.Is(err, ErrStorageFailed) {
			t.Errorf("append: %v", err)
		}
		if err := l.AwaitStored(1); err != nil || l.Stored(3) != 1 {
			t.Errorf("of what was stored before: %v, %d", err, l.Stored(3))
		}
		l.unstored.close()
		if n := b.fatals.Load(); n != 1 {
			t.Errorf("the node was ended %d times", n)
		}
	})
}

// Closing the stores waits until everything that a leader appended is on disk.
func TestStores_closeAwaitsDisk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := t.TempDir()
		b := openTestStores(t, path, Config{})
		disk := &disktest.GatedLog{LogStore: b.log}
		b.Log.disk = disk
		b.Log.LedBy(func() bool { return true })
		open := disk.Hold()
		if err := b.Log.StoreLog(command(1)); err != nil {
			t.Fatal(err)
		}
		closed := begin(b.Close)
		if done, err := closed(); done {
			t.Errorf("the stores are closed, and the disk does not have it: %v", err)
		}
		open()
		if done, err := closed(); !done || err != nil {
			t.Fatalf("closed: %v, %v", done, err)
		}
		if err := b.dir.Close(); err != nil {
			t.Fatal(err)
		}
		again := openTestStores(t, path, Config{})
		if last, err := again.Log.LastIndex(); last != 1 || err != nil {
			t.Errorf("the last entry is %d, %v", last, err)
		}
		again.close(t)
	})
}
