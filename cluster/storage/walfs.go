package storage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft-wal/types"
)

const (
	walSpareFileName = "spare"
	walZeroes        = WriteBackStep // bytes written at once when filling a segment
	// walDroppedMax bounds the segments waiting to be removed: 16 GiB of log, which takes
	// longer to write than to remove.
	walDroppedMax = 1024
)

// walFailure remembers the first error of raft-wal's own goroutine, where it would only be
// logged, so that the next append returns it.
type walFailure struct {
	mu  sync.Mutex
	err error
}

func (f *walFailure) note(err error) error {
	if err != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.err == nil {
			f.err = err
		}
	}
	return err
}

func (f *walFailure) first() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// walFS provides raft-wal's segments as files that are filled with zeroes and durable with
// their folder before they are used. Overwriting existing blocks needs no change of the
// file system's metadata, so a sync covers only the data: 20 to 50 % more appends. One
// segment is kept ready; a goroutine fills it while the previous one is in use. It
// implements types.VFS for one folder and for one goroutine at a time.
type walFS struct {
	dir     string
	size    int64
	reserve reserve
	failure *walFailure
	dropped *remover
	spare   chan error // receives when the spare is ready or has failed; nil = none is being made
}

// newWALFS opens the folder and removes what a crash has left of a spare. The caller must
// close it.
func newWALFS(dir string, size int64, failure *walFailure, logger hclog.Logger) (*walFS, error) {
	r := reserveOf(filepath.Dir(dir))
	if err := r.give(filepath.Join(dir, walSpareFileName)); err != nil {
		return nil, err
	}
	return &walFS{dir: dir, size: size, reserve: r, failure: failure, dropped: newRemover(walDroppedMax, r.give, logger)}, nil
}

// ListDir implements types.VFS.
func (v *walFS) ListDir(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// Create implements types.VFS.
func (v *walFS) Create(dir, name string, size uint64) (types.WritableFile, error) {
	f, err := v.create(filepath.Join(dir, name), int64(size))
	if err != nil {
		return nil, v.failure.note(fmt.Errorf("create segment %s: %w", name, err))
	}
	return f, nil
}

func (v *walFS) create(path string, size int64) (*walFile, error) {
	if exists, err := fileExists(path); err != nil || exists {
		return nil, errors.Join(err, os.ErrExist)
	}
	spare := filepath.Join(v.dir, walSpareFileName)
	if v.takeSpare() != nil || size != v.size {
		if err := v.fillSpare(size); err != nil {
			return nil, err
		}
	}
	if err := os.Rename(spare, path); err != nil {
		return nil, err
	}
	if err := syncDir(v.dir); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR, dataFileMode)
	if err != nil {
		return nil, err
	}
	v.makeSpare()
	return &walFile{f}, nil
}

// errNoSpare means that no segment is kept ready.
var errNoSpare = errors.New("no spare segment")

// takeSpare waits for the spare that is being made. After an error there is no spare, but a
// full disk may have room again by now.
func (v *walFS) takeSpare() error {
	if v.spare == nil {
		return errNoSpare
	}
	err := <-v.spare
	v.spare = nil
	return err
}

// makeSpare starts making the next spare.
func (v *walFS) makeSpare() {
	made := make(chan error, 1)
	v.spare = made
	go func() { made <- v.fillSpare(v.size) }()
}

func (v *walFS) fillSpare(size int64) error {
	spare := filepath.Join(v.dir, walSpareFileName)
	return v.reserve.at(spare, func() error { return fillFile(spare, size) })
}

// close waits for the spare and removes it. Dropped segments may be left.
func (v *walFS) close() error {
	v.dropped.close()
	_ = v.takeSpare() // whether there is one does not matter any more
	return v.reserve.give(filepath.Join(v.dir, walSpareFileName))
}

// fillFile creates a file of size zero bytes, which is on disk when it returns nil. After
// an error it is removed, because others need the space of half a file on a full disk. It
// is sent to disk in steps, because all of it at once delayed the log by 0.2 s.
func fillFile(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, dataFileMode)
	if err != nil {
		return err
	}
	zeroes := make([]byte, min(size, walZeroes))
	back := newWriteBack(f)
	for at := int64(0); at < size && err == nil; at += int64(len(zeroes)) {
		part := zeroes[:min(int64(len(zeroes)), size-at)]
		if _, err = f.WriteAt(part, at); err == nil {
			err = back.wrote(len(part), 0)
		}
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// Delete implements types.VFS. The segment is removed later and keeps its name until then:
// raft-wal's list of segments on disk no longer contains it, and raft-wal deletes segments
// that are not in its list when it is opened.
func (v *walFS) Delete(dir, name string) error {
	v.dropped.remove(filepath.Join(dir, name))
	return nil
}

// OpenReader implements types.VFS.
func (v *walFS) OpenReader(dir, name string) (types.ReadableFile, error) {
	return os.Open(filepath.Join(dir, name))
}

// OpenWriter implements types.VFS.
func (v *walFS) OpenWriter(dir, name string) (types.WritableFile, error) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR, dataFileMode)
	if err != nil {
		return nil, err
	}
	return &walFile{f}, nil
}

// walFile is a segment. Its folder is durable before it is used.
type walFile struct{ *os.File }

// Sync puts the data on disk, and the metadata needed to read them back: the length, if an
// entry went beyond the zeroes.
func (f *walFile) Sync() error { return syncData(f.File) }
