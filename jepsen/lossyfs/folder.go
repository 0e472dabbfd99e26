package lossyfs

import (
	"maps"
	"math/rand"
	"slices"
)

// pendingMax bounds the unsynced changes of a folder. When there are more, the oldest
// becomes durable by itself, as in a journal.
const pendingMax = 10_000

// names maps the names in a folder to inodes.
type names map[string]*inode

// rename is an atomic change of a folder's names.
type rename struct {
	remove string // name that goes, "" for none
	add    string // name that comes or gets another inode, "" for none
	inode  *inode
}

func (r rename) make(entries names) {
	if r.remove != "" {
		delete(entries, r.remove)
	}
	if r.add != "" {
		entries[r.add] = r.inode
	}
}

// folder holds the names in a folder: as seen by processes, and as last synced.
type folder struct {
	now, durable names
	pending      []rename // turns durable into now
}

// synced returns a folder with these names, all synced.
func (n names) synced() folder { return folder{now: n, durable: maps.Clone(n)} }

func (f *folder) change(r rename) {
	r.make(f.now)
	f.pending = append(f.pending, r)
	if len(f.pending) > pendingMax {
		f.pending[0].make(f.durable)
		f.pending = slices.Delete(f.pending, 0, 1)
	}
}

func (f *folder) sync() { *f = f.now.synced() }

// cut returns the names after a cut: those that were synced or, if torn, also the first few
// changes since.
func (f *folder) cut(torn *rand.Rand, loss *Loss) names {
	keep := 0
	if torn != nil {
		keep = torn.Intn(len(f.pending) + 1)
	}
	left := maps.Clone(f.durable)
	for _, r := range f.pending[:keep] {
		r.make(left)
	}
	loss.Names += len(f.pending) - keep
	return left
}
