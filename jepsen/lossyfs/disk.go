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
	// sizeMax bounds a disk, in bytes.
	sizeMax = 2 << 30
	// nameMax bounds a name, in bytes.
	nameMax = 255
)

// Loss says what a power cut took, and which unsynced data it left.
type Loss struct {
	Pages    int // changed pages of files that were lost
	Sizes    int // files whose new size was lost
	Names    int // changes of folders that were lost
	Survived int // changed pages that survived a torn cut
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

// disk is the file system, mounted or not. All calls fail with EIO while there is no power.
type disk struct {
	hung sync.RWMutex // read-locked while a call is served; Hang holds it
	mu   sync.Mutex   // guards all fields below, including inodes
	dead bool
	full bool // writes that need more room fail
	// syncDelay is the extra time of each sync, in nanoseconds. While syncFails is above 0,
	// every sync fails.
	syncDelay, syncFails atomic.Int64
	root                 *inode
	last                 uint64 // number of the newest inode
	pages                int64  // of all files with a name
	timer                timer
	journal              *Journal // records each change; nil: none
	number               int      // of the disk in it
}

// timer cuts the power after some changes.
type timer struct {
	left int // changes until the cut, 0 for never
	torn *rand.Rand
}

func newDisk() *disk {
	d := &disk{}
	d.root = d.newInodeLocked(syscall.S_IFDIR | 0o755)
	return d
}

func (d *disk) newInodeLocked(mode uint32) *inode {
	d.last++
	return &inode{number: d.last, mode: mode, changed: time.Now(), content: image{}.synced(), folder: names{}.synced()}
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

// change makes the change s of the inode and records it. After it the power may go. made is
// the new inode of stepMake.
func (d *disk) change(n *inode, s step) (made *inode, errno syscall.Errno) {
	errno = d.do(func() syscall.Errno {
		if errno := s.kind.make(d, n, &s); errno != 0 {
			return errno
		}
		d.journal.add(d.number, n, s)
		if d.timer.left > 0 {
			if d.timer.left--; d.timer.left == 0 {
				d.cutLocked(d.timer.torn)
			}
		}
		return 0
	})
	return s.made, errno
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

func (d *disk) makeLocked(dir *inode, s *step) syscall.Errno {
	switch {
	case len(s.name) > nameMax:
		return syscall.ENAMETOOLONG
	case dir.gone:
		return syscall.ENOENT
	case dir.folder.now[s.name] != nil:
		return syscall.EEXIST
	case d.full:
		return syscall.ENOSPC
	}
	s.made = d.newInodeLocked(s.mode)
	dir.change(rename{add: s.name, inode: s.made})
	return 0
}

func (d *disk) removeLocked(dir *inode, s *step) syscall.Errno {
	old := dir.folder.now[s.name]
	switch {
	case old == nil:
		return syscall.ENOENT
	case s.dir && !old.isDir():
		return syscall.ENOTDIR
	case !s.dir && old.isDir():
		return syscall.EISDIR
	case len(old.folder.now) > 0:
		return syscall.ENOTEMPTY
	}
	dir.change(rename{remove: s.name})
	d.goneLocked(old)
	return 0
}

// renameLocked renames within a folder. It replaces an existing target unless s.keep is
// set.
func (d *disk) renameLocked(dir *inode, s *step) syscall.Errno {
	moved, old := dir.folder.now[s.name], dir.folder.now[s.to]
	switch {
	case moved == nil:
		return syscall.ENOENT
	case len(s.to) > nameMax:
		return syscall.ENAMETOOLONG
	case moved == old:
		return 0
	case old != nil && s.keep:
		return syscall.EEXIST
	case old != nil && old.isDir() && !moved.isDir():
		return syscall.EISDIR
	case old != nil && !old.isDir() && moved.isDir():
		return syscall.ENOTDIR
	case old != nil && len(old.folder.now) > 0:
		return syscall.ENOTEMPTY
	}
	dir.change(rename{remove: s.name, add: s.to, inode: moved})
	if old != nil {
		d.goneLocked(old)
	}
	return 0
}

func (n *inode) change(r rename) {
	n.folder.change(r)
	n.changed = time.Now()
}

// goneLocked records that the inode has lost its name. Processes that have it open keep it.
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

func (d *disk) writeLocked(n *inode, s *step) syscall.Errno {
	if d.pages*pageSize+int64(len(s.data)) > sizeMax || d.full && n.content.takes(len(s.data), s.at) {
		return syscall.ENOSPC
	}
	d.countLocked(n, n.content.write(s.data, s.at))
	n.changed = time.Now()
	return 0
}

func (d *disk) resizeLocked(n *inode, s *step) syscall.Errno {
	d.countLocked(n, -n.content.resize(s.at))
	n.changed = time.Now()
	return 0
}

// extendLocked extends the file to at least that size. Space is not reserved.
func (d *disk) extendLocked(n *inode, s *step) syscall.Errno {
	n.content.now.size = max(n.content.now.size, s.at)
	return 0
}

func (d *disk) countLocked(n *inode, pages int) {
	if !n.gone {
		d.pages += int64(pages)
	}
}

// syncLocked makes the file's content, or the folder's names, durable.
func (d *disk) syncLocked(n *inode, _ *step) syscall.Errno {
	if n.isDir() {
		n.folder.sync()
	} else {
		n.content.sync()
	}
	return 0
}

// sync syncs the inode, as slowly as currently set, or fails.
func (d *disk) sync(n *inode) syscall.Errno {
	<-time.After(time.Duration(d.syncDelay.Load()))
	if d.syncFails.Load() > 0 {
		return syscall.EIO
	}
	_, errno := d.change(n, step{kind: stepSync})
	return errno
}

// Cut cuts the power. If torn is not nil, it decides which of the unsynced pages, sizes and
// names survive. End the processes that use the disk right before, so that none sees a
// failure and goes on.
func (d *disk) Cut(torn *rand.Rand) Loss {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.cutLocked(torn)
}

// CutAfter cuts the power after that number of further changes: writes, syncs, and changes
// of names, sizes and folders. This makes it possible to try every moment at which a
// program can lose power. The program sees that its disk fails. 0 cancels it.
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

// loseLocked removes unsynced data from the inode and all below it, in an order that does
// not depend on chance.
func (d *disk) loseLocked(n *inode, torn *rand.Rand, loss *Loss) {
	n.gone = false // its removal was lost
	if !n.isDir() {
		n.content = n.content.cut(torn, loss).synced()
		d.pages += int64(len(n.content.now.pages))
		return
	}
	n.folder = n.folder.cut(torn, loss).synced()
	for _, name := range slices.Sorted(maps.Keys(n.folder.now)) {
		d.loseLocked(n.folder.now[name], torn, loss)
	}
}

// Record writes each change from now on to the journal, under a number that must be unique
// in the journal. Call it while the disk is empty, because a replay begins with an empty
// one. Changes of modes are not recorded.
func (d *disk) Record(j *Journal, number int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.journal, d.number = j, number
}

// Fill makes all calls that need more room fail with ENOSPC. With false there is room
// again.
func (d *disk) Fill(full bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.full = full
}

// Hang blocks every call, even those that only read, until release is called, once. A
// process that waits can be killed.
func (d *disk) Hang() (release func()) {
	d.hung.Lock()
	return d.hung.Unlock
}

// SlowSync makes each sync take that much longer until repair is called, once.
func (d *disk) SlowSync(by time.Duration) (repair func()) {
	d.syncDelay.Add(int64(by))
	return func() { d.syncDelay.Add(-int64(by)) }
}

// FailSync makes each sync fail with EIO until repair is called, once.
func (d *disk) FailSync() (repair func()) {
	d.syncFails.Add(1)
	return func() { d.syncFails.Add(-1) }
}

// freeLocked returns the number of free pages.
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

// restore restores the power.
func (d *disk) restore() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dead = false
}
