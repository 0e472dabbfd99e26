package storage

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/claimq/claimq/cluster/nodekey"
)

const (
	lockFileName = "LOCK"
	dataDirMode  = 0o700
	dataFileMode = 0o600
	// replacingTmp is the suffix of a file that is about to replace another one.
	replacingTmp = ".tmp"
)

// Dir is a data folder locked by this process. Its methods are safe for concurrent use.
type Dir struct {
	path string
	key  ed25519.PrivateKey // from which the UUID of id is derived
	lock *os.File           // flock held while open; nil after Close
	next Start              // the start of this process

	mu sync.Mutex // guards id and lock
	id Identity
}

// OpenDir locks the data folder at path for the node named nodeID, and creates it if it does
// not exist. Errors: ErrDataDir, ErrDataDirInUse, ErrNodeIDMismatch, ErrFormatMismatch,
// ErrCorruptIdentity, ErrDiskFull.
func OpenDir(path, nodeID string) (*Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, DirError(path, err)
	}
	if err := makeDir(path); err != nil {
		return nil, err
	}
	lock, err := lockDir(path)
	if err != nil {
		return nil, err
	}
	id, key, err := takeIdentity(path, nodeID)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return &Dir{path: path, key: key, lock: lock, next: id.Start.Next(), id: id}, nil
}

// makeDir creates the folder at path and missing ones above it, unless it exists, and makes
// their names durable.
func makeDir(path string) error {
	info, err := os.Stat(path)
	if err == nil {
		if !info.IsDir() {
			return fmt.Errorf("%w: %s is a file, not a folder: give another --data-dir, or move the file away", ErrDataDir, path)
		}
		return nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return DirError(path, err)
	}
	above := filepath.Dir(path)
	if err := makeDir(above); err != nil {
		return err
	}
	if err := os.Mkdir(path, dataDirMode); err != nil && !errors.Is(err, os.ErrExist) {
		return DirError(path, err)
	}
	if err := syncDir(above); err != nil {
		return DirError(path, err)
	}
	return nil
}

// lockDir locks the folder at path without waiting, and writes our pid into the lock file. The
// kernel releases the lock with the process, however that ends.
func lockDir(path string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(path, lockFileName), os.O_RDWR|os.O_CREATE, dataFileMode)
	if err != nil {
		return nil, DirError(path, err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = fmt.Errorf("%w: another claimq process (%s) uses %s: stop it first, or give this node another folder",
			ErrDataDirInUse, lockOwner(f), path)
		return nil, errors.Join(err, f.Close())
	}
	if err == nil {
		err = notePID(f)
	}
	if err != nil {
		return nil, errors.Join(storageError(path, "lock "+lockFileName, err), f.Close())
	}
	return f, nil
}

func notePID(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// lockOwner returns "pid N" of the owner of the lock f, as far as known: the owner may be about
// to write it.
func lockOwner(f *os.File) string {
	b, err := io.ReadAll(io.LimitReader(f, 32))
	pid := strings.TrimSpace(string(b))
	if err != nil || pid == "" {
		return "pid unknown"
	}
	return "pid " + pid
}

// takeIdentity returns the identity of the folder at path with its key. It creates a new one if
// the folder has none and nothing that would need one.
func takeIdentity(path, nodeID string) (Identity, ed25519.PrivateKey, error) {
	id, ok, err := ReadIdentity(path)
	if err != nil {
		return Identity{}, nil, err
	}
	if ok {
		if err := id.check(path, nodeID); err != nil {
			return Identity{}, nil, err
		}
		key, err := keyOf(path, id)
		return id, key, err
	}
	// A log without an identity means that the identity was lost, and with it the name under
	// which this node voted.
	exists, err := fileExists(filepath.Join(path, logFileName))
	if err != nil {
		return Identity{}, nil, DirError(path, err)
	}
	if exists {
		return Identity{}, nil, corruptIdentity(filepath.Join(path, IdentityFile), "the file is missing, but there is a log")
	}
	key, err := takeNodeKey(path)
	if err != nil {
		return Identity{}, nil, err
	}
	id = newIdentity(nodeID, nodekey.Public(key))
	return id, key, writeIdentity(path, id)
}

// Path returns the absolute path of the folder.
func (d *Dir) Path() string { return d.path }

// Key returns the node's key, from which its UUID is derived.
func (d *Dir) Key() ed25519.PrivateKey { return d.key }

// Identity returns the owner of the folder.
func (d *Dir) Identity() Identity {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.id
}

// SetCluster durably records the node's cluster, and the members that reported it, if any. A
// folder keeps its cluster: another one is refused with ErrClusterIDMismatch, the same one is
// fine.
func (d *Dir) SetCluster(id string, by []Introducer) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.id.ClusterID != "" && d.id.ClusterID != id {
		return fmt.Errorf("%w: %s belongs to cluster %s, not %s: give the node an empty folder to let it join another cluster",
			ErrClusterIDMismatch, d.path, d.id.ClusterID, id)
	}
	if d.id.ClusterID == id && slices.Equal(d.id.Introducers, by) {
		return nil
	}
	changed := d.id
	changed.ClusterID, changed.Introducers = id, by
	return d.replaceLocked(changed)
}

// LeaveCluster durably records that the node now belongs to another cluster. Only
// cluster.Recover may call it.
func (d *Dir) LeaveCluster(id string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	changed := d.id
	changed.ClusterID = id
	return d.replaceLocked(changed)
}

func (d *Dir) setStoresCreated() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	changed := d.id
	changed.StoresCreated = true
	return d.replaceLocked(changed)
}

// NextStart returns the start of this process, which BeginStart records.
func (d *Dir) NextStart() Start { return d.next }

// BeginStart durably records that the node was started once more.
func (d *Dir) BeginStart() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	changed := d.id
	changed.Start = d.next
	return d.replaceLocked(changed)
}

// SetLevel durably records that the folder needs a binary that knows the feature level. It
// never decreases.
func (d *Dir) SetLevel(level uint32) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	format := formatOf(level)
	if d.id.Format >= format {
		return nil
	}
	changed := d.id
	changed.Format = format
	return d.replaceLocked(changed)
}

func (d *Dir) replaceLocked(id Identity) error {
	if d.lock == nil {
		return fmt.Errorf("%w: %s was let go", ErrDataDir, d.path)
	}
	if err := writeIdentity(d.path, id); err != nil {
		return err
	}
	d.id = id
	return nil
}

// Close releases the folder. A second Close does nothing.
func (d *Dir) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lock == nil {
		return nil
	}
	err := d.lock.Close()
	d.lock = nil
	return err
}

// DirError wraps an error about the data folder at path with advice: as ErrDiskFull, else
// ErrDataDir.
func DirError(path string, err error) error {
	advice := "check --data-dir"
	switch {
	case noRoom(err):
		return fmt.Errorf("%w: %w: %s, then start this node again", ErrDiskFull, err, roomAdvice(path))
	case errors.Is(err, syscall.EROFS):
		advice = "its file system is mounted read-only: mount it writable (it may have been remounted after a disk error), or give another --data-dir"
	case errors.Is(err, os.ErrPermission):
		advice = fmt.Sprintf("give the user that runs claimq (uid %d) the right to read and write it", os.Geteuid())
	case errors.Is(err, syscall.ENOTDIR):
		advice = "a part of the path is a file: give another --data-dir"
	}
	return fmt.Errorf("%w: %s: %w: %s", ErrDataDir, path, err, advice)
}

// writeFileDurably replaces the file at path. When it returns nil, content and name are on
// disk; a crash before that leaves the old file.
func writeFileDurably(path string, content []byte) error {
	tmp := path + replacingTmp
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, dataFileMode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes creations, renames and removals in the folder durable.
func syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func fileExists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
