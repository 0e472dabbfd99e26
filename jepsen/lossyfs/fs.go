package lossyfs

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

const (
	// fsType is the kernel's name of the file system, after "fuse.".
	fsType = "claimq-lossyfs"
	// cacheTimeout bounds the kernel's caches. It may cache, because all changes are made
	// through it.
	cacheTimeout = time.Minute
	// unmountTimeout bounds the wait until the kernel releases the file system.
	unmountTimeout = 10 * time.Second
)

// FS is a mounted disk that can lose its power, be full or slow, or stop answering. It is
// safe for concurrent use.
type FS struct {
	*disk
	dir string

	mu     sync.Mutex   // guards the fields below
	server *fuse.Server // nil while it is not mounted
}

// New mounts an empty disk on dir, which it creates if needed. It needs root. This process
// must not map files of the disk into memory, because it also serves them.
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

// Dir returns the mount point.
func (f *FS) Dir() string { return f.dir }

func (f *FS) mountLocked() error {
	timeout := cacheTimeout
	options := &fs.Options{
		EntryTimeout: &timeout, AttrTimeout: &timeout,
		RootStableAttr: &fs.StableAttr{Ino: f.root.number},
		MountOptions: fuse.MountOptions{
			FsName: fsType + "-" + strconv.Itoa(os.Getpid()), Name: fsType,
			AllowOther: true, DirectMountStrict: true, DisableXAttrs: true,
		},
	}
	server, err := fs.Mount(f.dir, &node{disk: f.disk, inode: f.root}, options)
	if err != nil {
		return fmt.Errorf("mount a lossy disk: %w", err)
	}
	f.server = server
	return nil
}

// Restore restores the power if it was cut. The disk has what the cut left. Files that a
// process still has open fail forever.
func (f *FS) Restore() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.Powered() {
		return nil
	}
	if err := f.unmountLocked(); err != nil {
		return err
	}
	f.restore()
	return f.mountLocked()
}

// Close unmounts the disk and discards it. It may be called twice.
func (f *FS) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.unmountLocked()
}

// unmountLocked unmounts and waits until no more calls are served, even if files are open.
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
