package lossyfs

import (
	"maps"
	"math/rand"
	"slices"
)

// pendingMax bounds the changes of a folder that are not synced. The oldest
// one on top of it becomes durable by itself, as in a journal.
const pendingMax = 10_000

// change is one change of a folder, made as a whole.
type change struct {
	remove string // name that goes, "" for none
	add    string // name that comes or gets another inode, "" for none
	inode  *inode
}

func (ch change) make(entries map[string]*inode) {
	if ch.remove != "" {
		delete(entries, ch.remove)
	}
	if ch.add != "" {
		entries[ch.add] = ch.inode
	}
}

// folder is the names in a folder: as processes see them, and as they were
// synced.
type folder struct {
	now, synced map[string]*inode
	pending     []change // makes synced into now
}

func newFolder() folder {
	return folder{now: map[string]*inode{}, synced: map[string]*inode{}}
}

func (f *folder) change(ch change) {
	ch.make(f.now)
	f.pending = append(f.pending, ch)
	if len(f.pending) > pendingMax {
		f.pending[0].make(f.synced)
		f.pending = slices.Delete(f.pending, 0, 1)
	}
}

func (f *folder) sync() {
	f.synced = maps.Clone(f.now)
	f.pending = nil
}

// cut makes what processes see what was synced, or, torn, that and the first
// few changes since.
func (f *folder) cut(torn *rand.Rand, loss *Loss) {
	keep := 0
	if torn != nil {
		keep = torn.Intn(len(f.pending) + 1)
	}
	for _, ch := range f.pending[:keep] {
		ch.make(f.synced)
	}
	loss.Names += len(f.pending) - keep
	f.now = maps.Clone(f.synced)
	f.pending = nil
}
