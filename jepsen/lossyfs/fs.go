package lossyfs

import (
	"errors"
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

const (
	// fsType is what the kernel calls the file system, after "fuse.".
	fsType = "claimq-lossyfs"
	// cacheTimeout is how long the kernel may keep what it knows: all changes are
	// made through it.
	cacheTimeout = time.Minute
	// unmountTimeout bounds the wait for the kernel to let go of the file system.
	unmountTimeout = 10 * time.Second
)

// FS is a mounted disk. It is safe for concurrent use.
type FS struct {
	dir  string
	disk *disk

	mu     sync.Mutex   // guards what follows
	server *fuse.Server // nil while it is not mounted
}

// New mounts an empty disk on dir, which it makes if needed. It needs root. The
// process must not map its files into memory itself: it is the one that serves
// them.
func New(dir string) (*FS, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("mount a lossy disk: it needs root")
	}
	if err := removeStale(); err != nil {
		return nil, fmt.Errorf("unmount what crashed runs left: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("mount a lossy disk: %w", err)
	}
	f := &FS{dir: dir, disk: newDisk()}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.mountLocked(); err != nil {
		return nil, err
	}
	return f, nil
}

// Dir returns where the disk is mounted.
func (f *FS) Dir() string { return f.dir }

func (f *FS) mountLocked() error {
	timeout := cacheTimeout
	options := &fs.Options{
		EntryTimeout: &timeout, AttrTimeout: &timeout,
		RootStableAttr: &fs.StableAttr{Ino: f.disk.root.number},
		MountOptions: fuse.MountOptions{
			FsName: fsType + "-" + strconv.Itoa(os.Getpid()), Name: fsType,
			AllowOther: true, DirectMountStrict: true, DisableXAttrs: true,
		},
	}
	server, err := fs.Mount(f.dir, &node{disk: f.disk, inode: f.disk.root}, options)
	if err != nil {
		return fmt.Errorf("mount a lossy disk: %w", err)
	}
	f.server = server
	return nil
}

// Cut takes the power away. With a torn that is not nil, it decides which of
// the pages, sizes and names survive that were not synced. End the processes
// that use the disk right before: none may see that it fails and go on.
func (f *FS) Cut(torn *rand.Rand) Loss { return f.disk.cut(torn) }

// CutAfter takes the power away by itself after that many changes from now on:
// writes, syncs, and changes of names, sizes and folders. So every moment at
// which a program can lose power can be tried. The program sees that its disk
// fails. 0 calls it off.
func (f *FS) CutAfter(changes int, torn *rand.Rand) { f.disk.cutAfter(changes, torn) }

// Record writes each change from now on to the journal, as that of a disk with this
// number, which no other disk of the journal has. Call it before anything is on the disk:
// a replay begins with an empty one. Changes of modes are not written down.
func (f *FS) Record(j *Journal, number int) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	f.disk.notes = journaled{j, number}
}

// Fill leaves no room on the disk: what would take more fails with ENOSPC. With false
// there is room again.
func (f *FS) Fill(full bool) { f.disk.fill(full) }

// Hang lets every call wait, those that only read, too, until the function that it
// returns is called, once. A process that waits can be killed.
func (f *FS) Hang() (release func()) {
	f.disk.hung.Lock()
	return f.disk.hung.Unlock
}

// SlowSync lets each sync take so much longer, until the function that it returns is
// called, once.
func (f *FS) SlowSync(by time.Duration) (repair func()) {
	f.disk.syncDelay.Add(int64(by))
	return func() { f.disk.syncDelay.Add(-int64(by)) }
}

// FailSync lets each sync fail with EIO, until the function that it returns is called,
// once.
func (f *FS) FailSync() (repair func()) {
	f.disk.syncFails.Add(1)
	return func() { f.disk.syncFails.Add(-1) }
}

// Powered reports whether the disk has power.
func (f *FS) Powered() bool { return f.disk.powered() }

// Restore gives the power back, if it is away: the disk is what the cut has
// left. What a process still has open fails for ever.
func (f *FS) Restore() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.disk.powered() {
		return nil
	}
	if err := f.unmountLocked(); err != nil {
		return err
	}
	f.disk.restore()
	return f.mountLocked()
}

// Close unmounts the disk and forgets it. It is safe twice.
func (f *FS) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.unmountLocked()
}

// unmountLocked unmounts and waits until nothing is served any more, whether
// files are open or not.
func (f *FS) unmountLocked() error {
	if f.server == nil {
		return nil
	}
	if err := unmount(f.dir); err != nil {
		return fmt.Errorf("unmount %s: %w", f.dir, err)
	}
	ended := make(chan struct{})
	server := f.server
	f.server = nil
	go func() { server.Wait(); close(ended) }()
	select {
	case <-ended:
		return nil
	case <-time.After(unmountTimeout):
		return fmt.Errorf("unmount %s: it is still in use after %v", f.dir, unmountTimeout)
	}
}
