package lossyfs

import (
	"maps"
	"math/rand"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// sizeMax bounds a disk, in bytes. Past it there is no space left.
	sizeMax = 2 << 30
	// nameMax bounds a name, in bytes.
	nameMax = 255
)

// Loss says what a power cut took, and what it left that was not synced.
type Loss struct {
	Pages    int // changed pages of files that were lost
	Sizes    int // files whose new size was lost
	Names    int // changes of folders that were lost
	Survived int // changed pages that survived, of a torn cut
}

// inode is a file or a folder.
type inode struct {
	number  uint64
	mode    uint32 // with the type
	changed time.Time
	gone    bool // it has no name any more
	content content
	folder  folder
}

func (n *inode) isDir() bool { return n.mode&syscall.S_IFMT == syscall.S_IFDIR }

// disk is the file system, mounted or not. All its calls answer EIO while there
// is no power.
type disk struct {
	hung sync.RWMutex // held for reading while a call is served; Hang holds it
	mu   sync.Mutex   // guards all that follows, inodes included
	dead bool
	full bool // nothing that takes more room can be written
	// syncDelay is how much longer each sync takes, in nanoseconds, and while syncFails is
	// above 0 none is done.
	syncDelay, syncFails atomic.Int64
	root                 *inode
	last                 uint64 // number of the newest inode
	pages                int64  // of all files that have a name
	timer                timer
	notes                journaled // of each change that was made
}

// timer takes the power away by itself.
type timer struct {
	left int // changes until then, 0 for never
	torn *rand.Rand
}

func newDisk() *disk {
	d := &disk{}
	d.root = d.newInodeLocked(syscall.S_IFDIR | 0o755)
	return d
}

func (d *disk) newInodeLocked(mode uint32) *inode {
	d.last++
	return &inode{number: d.last, mode: mode, changed: time.Now(), content: newContent(), folder: newFolder()}
}

// do calls f while nothing else happens to the disk.
func (d *disk) do(f func() syscall.Errno) syscall.Errno {
	d.hung.RLock()
	defer d.hung.RUnlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead {
		return syscall.EIO
	}
	return f()
}

// alter is do, for what changes something: after it, the power may go.
func (d *disk) alter(f func() syscall.Errno) syscall.Errno {
	return d.do(func() syscall.Errno {
		errno := f()
		if errno == 0 && d.timer.left > 0 {
			if d.timer.left--; d.timer.left == 0 {
				d.cutLocked(d.timer.torn)
			}
		}
		return errno
	})
}

func (d *disk) lookup(dir *inode, name string) (found *inode, errno syscall.Errno) {
	errno = d.do(func() syscall.Errno {
		if found = dir.folder.now[name]; found == nil {
			return syscall.ENOENT
		}
		return 0
	})
	return found, errno
}

// make makes a file or folder.
func (d *disk) make(dir *inode, name string, mode uint32) (made *inode, errno syscall.Errno) {
	errno = d.alter(func() syscall.Errno {
		switch {
		case len(name) > nameMax:
			return syscall.ENAMETOOLONG
		case dir.gone:
			return syscall.ENOENT
		case dir.folder.now[name] != nil:
			return syscall.EEXIST
		case d.full:
			return syscall.ENOSPC
		}
		made = d.newInodeLocked(mode)
		d.changeLocked(dir, change{add: name, inode: made})
		d.notes.add(step{kind: stepMake, inode: dir.number, made: made.number, name: name, mode: mode})
		return 0
	})
	return made, errno
}

// remove removes a file, or a folder that is empty.
func (d *disk) remove(dir *inode, name string, wantDir bool) syscall.Errno {
	return d.alter(func() syscall.Errno {
		old := dir.folder.now[name]
		switch {
		case old == nil:
			return syscall.ENOENT
		case wantDir && !old.isDir():
			return syscall.ENOTDIR
		case !wantDir && old.isDir():
			return syscall.EISDIR
		case len(old.folder.now) > 0:
			return syscall.ENOTEMPTY
		}
		d.changeLocked(dir, change{remove: name})
		d.goneLocked(old)
		d.notes.add(step{kind: stepRemove, inode: dir.number, name: name, dir: wantDir})
		return 0
	})
}

// rename renames within a folder. What has the new name already is replaced,
// unless keep.
func (d *disk) rename(dir *inode, from, to string, keep bool) syscall.Errno {
	return d.alter(func() syscall.Errno {
		moved, old := dir.folder.now[from], dir.folder.now[to]
		switch {
		case moved == nil:
			return syscall.ENOENT
		case len(to) > nameMax:
			return syscall.ENAMETOOLONG
		case moved == old:
			return 0
		case old != nil && keep:
			return syscall.EEXIST
		case old != nil && old.isDir() && !moved.isDir():
			return syscall.EISDIR
		case old != nil && !old.isDir() && moved.isDir():
			return syscall.ENOTDIR
		case old != nil && len(old.folder.now) > 0:
			return syscall.ENOTEMPTY
		}
		d.changeLocked(dir, change{remove: from, add: to, inode: moved})
		if old != nil {
			d.goneLocked(old)
		}
		d.notes.add(step{kind: stepRename, inode: dir.number, name: from, to: to})
		return 0
	})
}

func (d *disk) changeLocked(dir *inode, ch change) {
	dir.folder.change(ch)
	dir.changed = time.Now()
}

// goneLocked notes that the inode has lost its name. Processes that have it
// open keep it.
func (d *disk) goneLocked(n *inode) {
	n.gone = true
	d.pages -= int64(len(n.content.now.pages))
}

func (d *disk) read(n *inode, dest []byte, off int64) (count int, errno syscall.Errno) {
	errno = d.do(func() syscall.Errno {
		count = n.content.read(dest, off)
		return 0
	})
	return count, errno
}

func (d *disk) write(n *inode, data []byte, off int64) syscall.Errno {
	return d.alter(func() syscall.Errno {
		if d.pages*pageSize+int64(len(data)) > sizeMax || d.full && n.content.takes(len(data), off) {
			return syscall.ENOSPC
		}
		d.countLocked(n, n.content.write(data, off))
		n.changed = time.Now()
		d.notes.add(step{kind: stepWrite, inode: n.number, at: off, data: data})
		return 0
	})
}

func (d *disk) resize(n *inode, size int64) syscall.Errno {
	return d.alter(func() syscall.Errno {
		d.countLocked(n, -n.content.resize(size))
		n.changed = time.Now()
		d.notes.add(step{kind: stepResize, inode: n.number, at: size})
		return 0
	})
}

// extend makes the file at least that large. Space is not reserved.
func (d *disk) extend(n *inode, size int64) syscall.Errno {
	return d.alter(func() syscall.Errno {
		n.content.now.size = max(n.content.now.size, size)
		d.notes.add(step{kind: stepExtend, inode: n.number, at: size})
		return 0
	})
}

func (d *disk) countLocked(n *inode, pages int) {
	if !n.gone {
		d.pages += int64(pages)
	}
}

// sync makes the file's content, or the folder's names, survive.
func (d *disk) sync(n *inode) syscall.Errno {
	<-time.After(time.Duration(d.syncDelay.Load()))
	if d.syncFails.Load() > 0 {
		return syscall.EIO
	}
	return d.alter(func() syscall.Errno {
		if n.isDir() {
			n.folder.sync()
		} else {
			n.content.sync()
		}
		d.notes.add(step{kind: stepSync, inode: n.number})
		return 0
	})
}

// Cut takes the power away. With a torn that is not nil, it decides which of
// the pages, sizes and names survive that were not synced. End the processes
// that use the disk right before: none may see that it fails and go on.
func (d *disk) Cut(torn *rand.Rand) Loss {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.cutLocked(torn)
}

// CutAfter takes the power away by itself after that many changes from now on:
// writes, syncs, and changes of names, sizes and folders. So every moment at
// which a program can lose power can be tried. The program sees that its disk
// fails. 0 calls it off.
func (d *disk) CutAfter(changes int, torn *rand.Rand) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.timer = timer{changes, torn}
}

func (d *disk) cutLocked(torn *rand.Rand) Loss {
	d.dead = true
	d.timer = timer{}
	d.pages = 0
	var loss Loss
	d.loseLocked(d.root, torn, &loss)
	return loss
}

// loseLocked takes from the inode and all below it what was not synced, in an
// order that does not depend on chance.
func (d *disk) loseLocked(n *inode, torn *rand.Rand, loss *Loss) {
	n.gone = false // its removal was lost
	if !n.isDir() {
		n.content.cut(torn, loss)
		d.pages += int64(len(n.content.now.pages))
		return
	}
	n.folder.cut(torn, loss)
	for _, name := range slices.Sorted(maps.Keys(n.folder.now)) {
		d.loseLocked(n.folder.now[name], torn, loss)
	}
}

// Record writes each change from now on to the journal, as that of a disk with this
// number, which no other disk of the journal has. Call it before anything is on the disk:
// a replay begins with an empty one. Changes of modes are not written down.
func (d *disk) Record(j *Journal, number int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.notes = journaled{j, number}
}

// Fill leaves no room on the disk: what would take more fails with ENOSPC. With false
// there is room again.
func (d *disk) Fill(full bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.full = full
}

// Hang lets every call wait, those that only read, too, until the function that it
// returns is called, once. A process that waits can be killed.
func (d *disk) Hang() (release func()) {
	d.hung.Lock()
	return d.hung.Unlock
}

// SlowSync lets each sync take so much longer, until the function that it returns is
// called, once.
func (d *disk) SlowSync(by time.Duration) (repair func()) {
	d.syncDelay.Add(int64(by))
	return func() { d.syncDelay.Add(-int64(by)) }
}

// FailSync lets each sync fail with EIO, until the function that it returns is called,
// once.
func (d *disk) FailSync() (repair func()) {
	d.syncFails.Add(1)
	return func() { d.syncFails.Add(-1) }
}

// freeLocked returns how many pages there is room for.
func (d *disk) freeLocked() int64 {
	if d.full {
		return 0
	}
	return max(sizeMax/pageSize-d.pages, 0)
}

// Powered reports whether the disk has power.
func (d *disk) Powered() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.dead
}

// restore gives the power back.
func (d *disk) restore() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dead = false
}
