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
	// Sync is true of one that makes others durable.
	Sync bool
	// Fills is true of zeros that are written behind others: what a program does that
	// reserves room.
	Fills bool
	// What says in words what it was.
	What string
}

// Replay makes the disks of a journal again, change by change. It needs no mount
// and no root. It is for one goroutine.
type Replay struct {
	steps []step
	at    int
	disks map[int]*replayed
}

// replayed is a disk and its inodes by number, those without a name included.
type replayed struct {
	disk   *disk
	inodes map[uint64]*inode
	before step // the last change
}

// Replay begins with empty disks. What is written to the journal later is not in it.
func (j *Journal) Replay() *Replay {
	j.mu.Lock()
	defer j.mu.Unlock()
	return &Replay{steps: slices.Clone(j.steps), disks: map[int]*replayed{}}
}

// At returns how many changes have been replayed.
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
	what, errno := d.play(s)
	if errno != 0 {
		return Change{}, false, fmt.Errorf("replay change %d, %s: %w", r.at, what, errno)
	}
	r.at++
	c = Change{Disk: s.disk, Sync: s.kind == stepSync, Fills: s.isFillBehind(d.before), What: what}
	d.before = s
	return c, true, nil
}

// isFillBehind reports whether s writes zeros right behind those that before wrote.
func (s step) isFillBehind(before step) bool {
	return s.kind == stepWrite && before.kind == stepWrite && s.inode == before.inode &&
		s.data == nil && before.data == nil && s.at == before.at+int64(before.count)
}

func (d *replayed) play(s step) (what string, errno syscall.Errno) {
	in := d.inodes[s.inode]
	if in == nil {
		return fmt.Sprintf("of inode %d, which is not there", s.inode), syscall.ENOENT
	}
	switch s.kind {
	case stepMake:
		d.disk.last = s.made - 1
		made, errno := d.disk.make(in, s.name, s.mode)
		d.inodes[s.made] = made
		return "make " + s.name, errno
	case stepRemove:
		return "remove " + s.name, d.disk.remove(in, s.name, s.dir)
	case stepRename:
		return "rename " + s.name + " to " + s.to, d.disk.rename(in, s.name, s.to, false)
	case stepWrite:
		data := s.data
		if data == nil {
			data = make([]byte, s.count)
		}
		return fmt.Sprintf("write %d bytes at %d of %d", s.count, s.at, s.inode), d.disk.write(in, data, s.at)
	case stepResize:
		return fmt.Sprintf("resize %d to %d", s.inode, s.at), d.disk.resize(in, s.at)
	case stepExtend:
		return fmt.Sprintf("extend %d to %d", s.inode, s.at), d.disk.extend(in, s.at)
	default:
		return fmt.Sprintf("sync %d", s.inode), d.disk.sync(in)
	}
}

// Image writes the disk of that number, as it is after the changes so far, to dir, which must be
// empty or missing. lost takes away before that what was not synced, or, with a
// torn, part of it. The replay goes on from what it was. Pages of zeros are left
// out of the files.
func (r *Replay) Image(number int, dir string, lost bool, torn *rand.Rand) error {
	d := r.disks[number]
	if d == nil {
		return os.MkdirAll(dir, 0o700)
	}
	root := d.disk.root
	if lost {
		root = root.copy(map[*inode]*inode{})
		(&disk{root: root}).Cut(torn)
	}
	return root.export(dir)
}

// copy returns a copy of the inode and of all that is below it, now or as it was
// synced, that can be cut without changing this one. Pages are shared, so it is good
// until the original is written to.
func (n *inode) copy(made map[*inode]*inode) *inode {
	if c := made[n]; c != nil {
		return c
	}
	c := *n
	made[n] = &c
	c.content = content{
		now:    image{pages: maps.Clone(n.content.now.pages), size: n.content.now.size},
		synced: image{pages: maps.Clone(n.content.synced.pages), size: n.content.synced.size},
		dirty:  maps.Clone(n.content.dirty),
	}
	names := func(entries map[string]*inode) map[string]*inode {
		out := make(map[string]*inode, len(entries))
		for name, in := range entries {
			out[name] = in.copy(made)
		}
		return out
	}
	c.folder = folder{now: names(n.folder.now), synced: names(n.folder.synced), pending: slices.Clone(n.folder.pending)}
	for i, ch := range c.folder.pending {
		if ch.inode != nil {
			c.folder.pending[i].inode = ch.inode.copy(made)
		}
	}
	return &c
}

// export writes the inode, with all below it, as processes see it.
func (n *inode) export(path string) error {
	if !n.isDir() {
		return n.exportFile(path)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(n.folder.now)) {
		if err := n.folder.now[name].export(filepath.Join(path, name)); err != nil {
			return err
		}
	}
	return nil
}

func (n *inode) exportFile(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, os.FileMode(n.mode&0o777))
	if err != nil {
		return err
	}
	err = f.Truncate(n.content.now.size)
	for i, p := range n.content.now.pages {
		at := i * pageSize
		if isZero(p[:]) || at >= n.content.now.size {
			continue
		}
		_, werr := f.WriteAt(p[:min(pageSize, n.content.now.size-at)], at)
		err = errors.Join(err, werr)
	}
	return errors.Join(err, f.Close())
}
