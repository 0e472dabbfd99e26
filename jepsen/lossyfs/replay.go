package lossyfs

import (
	"errors"
	"fmt"
	"maps"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// Change is a change that was replayed.
type Change struct {
	Disk int
	// Sync is true if the change makes others durable.
	Sync bool
	// Fills is true if the change writes zeros after other zeros, as a program does to reserve
	// room.
	Fills bool
	// What describes the change in words.
	What string
}

// Replay rebuilds the disks of a journal, change by change. It needs no mount and no root. It is
// for one goroutine.
type Replay struct {
	steps []step
	at    int
	disks map[int]*replayed
}

// replayed is a disk and its inodes by number, including those without a name.
type replayed struct {
	disk   *disk
	inodes map[uint64]*inode
	before step // the last change
}

// Replay starts with empty disks. It does not include later changes.
func (j *Journal) Replay() *Replay {
	j.mu.Lock()
	defer j.mu.Unlock()
	return &Replay{steps: slices.Clone(j.steps), disks: map[int]*replayed{}}
}

// At returns the number of replayed changes.
func (r *Replay) At() int { return r.at }

// Next replays one change; ok is false at the end.
func (r *Replay) Next() (c Change, ok bool, err error) {
	if r.at == len(r.steps) {
		return Change{}, false, nil
	}
	s := r.steps[r.at]
	d := r.disks[s.disk]
	if d == nil {
		d = &replayed{disk: newDisk()}
		d.inodes = map[uint64]*inode{d.disk.root.number: d.disk.root}
		r.disks[s.disk] = d
	}
	if errno := d.play(s); errno != 0 {
		return Change{}, false, fmt.Errorf("replay change %d, %v: %w", r.at, s, errno)
	}
	r.at++
	c = Change{Disk: s.disk, Sync: s.kind == stepSync, Fills: s.isFillBehind(d.before), What: s.String()}
	d.before = s
	return c, true, nil
}

// isFillBehind reports whether s writes zeros right after those that before wrote.
func (s step) isFillBehind(before step) bool {
	return s.kind == stepWrite && before.kind == stepWrite && s.inode == before.inode &&
		s.data == nil && before.data == nil && s.at == before.at+int64(before.count)
}

func (d *replayed) play(s step) syscall.Errno {
	in := d.inodes[s.inode]
	if in == nil {
		return syscall.ENOENT
	}
	if s.data == nil {
		s.data = make([]byte, s.count)
	}
	if s.made != nil {
		d.disk.last = s.made.number - 1
	}
	made, errno := d.disk.change(in, s)
	if made != nil {
		d.inodes[made.number] = made
	}
	return errno
}

// Image writes the disk with that number, after the changes up to now, to dir, which must
// be empty or missing. If lost, unsynced data is removed first, or with torn, part of it. The
// replay itself is not affected. Pages of zeros are left out of the files.
func (r *Replay) Image(number int, dir string, lost bool, torn *rand.Rand) error {
	d := r.disks[number]
	if d == nil {
		return os.MkdirAll(dir, 0o700)
	}
	return d.disk.root.export(dir, lost, torn)
}

// export writes the inode and all below it, as processes see it or, if lost, as a cut would
// leave it.
func (n *inode) export(path string, lost bool, torn *rand.Rand) error {
	var loss Loss
	if !n.isDir() {
		left := n.content.now
		if lost {
			left = n.content.cut(torn, &loss)
		}
		return left.export(path, os.FileMode(n.mode&0o777))
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	left := n.folder.now
	if lost {
		left = n.folder.cut(torn, &loss)
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		if err := left[name].export(filepath.Join(path, name), lost, torn); err != nil {
			return err
		}
	}
	return nil
}

func (m image) export(path string, mode os.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	err = f.Truncate(m.size)
	for i, p := range m.pages {
		at := i * pageSize
		if isZero(p[:]) || at >= m.size {
			continue
		}
		_, werr := f.WriteAt(p[:min(pageSize, m.size-at)], at)
		err = errors.Join(err, werr)
	}
	return errors.Join(err, f.Close())
}
