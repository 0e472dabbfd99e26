package lossyfs

import (
	"bytes"
	"sync"
)

// stepKind is what a change of a disk was.
type stepKind int

const (
	stepMake stepKind = iota
	stepRemove
	stepRename
	stepWrite
	stepResize
	stepExtend
	stepSync
)

// step is one change of a disk.
type step struct {
	disk  int // the number that Record was given
	kind  stepKind
	inode uint64 // the file; the folder, where names change
	made  uint64 // the new inode of stepMake
	name  string // that is made, removed or renamed
	to    string // the new name of stepRename
	mode  uint32 // of stepMake
	dir   bool   // what stepRemove removes is a folder
	at    int64  // offset of stepWrite, the size of stepResize and stepExtend
	count int    // bytes of stepWrite
	data  []byte // of stepWrite; nil: zeros
}

// Journal is every change of some disks, in the one order in which they
// happened. It holds all that was written, so it is for short runs. It is safe
// for concurrent use.
type Journal struct {
	mu    sync.Mutex
	steps []step // guarded by mu
}

// Len returns how many changes there were so far. What somebody was told of by
// now rests on these alone.
func (j *Journal) Len() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.steps)
}

func (j *Journal) add(s step) {
	if s.kind == stepWrite {
		if s.count = len(s.data); isZero(s.data) {
			s.data = nil
		} else {
			s.data = bytes.Clone(s.data)
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.steps = append(j.steps, s)
}

func isZero(data []byte) bool {
	for _, b := range data {
		if b != 0 {
			return false
		}
	}
	return true
}

// journaled is where a disk writes its changes down. The zero value writes
// nothing.
type journaled struct {
	journal *Journal
	number  int
}

func (j journaled) add(s step) {
	if j.journal != nil {
		s.disk = j.number
		j.journal.add(s)
	}
}
