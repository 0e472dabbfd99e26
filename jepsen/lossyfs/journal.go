package lossyfs

import (
	"bytes"
	"fmt"
	"sync"
	"syscall"
)

// stepKind is a kind of change: its name, and the function that applies it to an inode.
type stepKind struct {
	name string
	make func(d *disk, n *inode, s *step) syscall.Errno
}

// The kinds of changes.
var (
	stepMake   = &stepKind{"make", (*disk).makeLocked}
	stepRemove = &stepKind{"remove", (*disk).removeLocked}
	stepRename = &stepKind{"rename", (*disk).renameLocked}
	stepWrite  = &stepKind{"write", (*disk).writeLocked}
	stepResize = &stepKind{"resize", (*disk).resizeLocked}
	stepExtend = &stepKind{"extend", (*disk).extendLocked}
	stepSync   = &stepKind{"sync", (*disk).syncLocked}
)

// step is one change of a disk.
type step struct {
	kind  *stepKind
	disk  int    // the number that Record was given
	inode uint64 // the file; for changes of names, the folder
	name  string // that is made, removed or renamed
	to    string // the new name of stepRename
	keep  bool   // stepRename replaces nothing
	mode  uint32 // of stepMake
	dir   bool   // stepRemove removes a folder
	at    int64  // offset of stepWrite, the size of stepResize and stepExtend
	data  []byte // of stepWrite; in a journal nil: zeros
	count int    // bytes of stepWrite in a journal
	made  *inode // by stepMake, once it is done
}

// String describes the change in words.
func (s step) String() string {
	return fmt.Sprintf("%s, inode %d, %q to %q, at %d, %d bytes", s.kind.name, s.inode, s.name, s.to, s.at, s.count)
}

// Journal records every change of some disks in the order in which they happened. It holds
// all written data, so it is for short runs. It is safe for concurrent use.
type Journal struct {
	mu    sync.Mutex
	steps []step // guarded by mu
}

// Len returns the number of changes so far. Whatever has been acknowledged by now depends
// only on these.
func (j *Journal) Len() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.steps)
}

// add records a change of the inode, if there is a journal.
func (j *Journal) add(disk int, n *inode, s step) {
	if j == nil {
		return
	}
	s.disk, s.inode, s.count = disk, n.number, len(s.data)
	if isZero(s.data) {
		s.data = nil
	}
	s.data = bytes.Clone(s.data)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.steps = append(j.steps, s)
}

func isZero(data []byte) bool { return len(bytes.TrimLeft(data, "\x00")) == 0 }
