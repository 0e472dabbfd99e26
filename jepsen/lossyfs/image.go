package lossyfs

import (
	"maps"
	"math/rand"
	"slices"
)

// pageSize is what is lost or survives as a whole.
const pageSize = 4096

// page is never changed while two images share it.
type page [pageSize]byte

// image is the content of a file. Pages that are not there are zeros.
type image struct {
	pages map[int64]*page
	size  int64 // in bytes. Invariant: zeros from here to the end of the last page
}

// content is a file's content: as processes see it, and as it was synced.
type content struct {
	now, synced image
	dirty       map[int64]bool // pages that may differ between the two
}

func newContent() content {
	return content{now: image{pages: map[int64]*page{}}, synced: image{pages: map[int64]*page{}}, dirty: map[int64]bool{}}
}

// read copies what is there from off on and returns how much.
func (c *content) read(dest []byte, off int64) int {
	if off >= c.now.size {
		return 0
	}
	dest = dest[:min(int64(len(dest)), c.now.size-off)]
	for done := 0; done < len(dest); {
		at := off + int64(done)
		rest := dest[done:]
		if p := c.now.pages[at/pageSize]; p != nil {
			done += copy(rest, p[at%pageSize:])
			continue
		}
		zeros := min(len(rest), int(pageSize-at%pageSize))
		clear(rest[:zeros])
		done += zeros
	}
	return len(dest)
}

// write writes data at off and returns how many pages it added.
func (c *content) write(data []byte, off int64) (added int) {
	for done := 0; done < len(data); {
		at := off + int64(done)
		p, isNew := c.writable(at / pageSize)
		done += copy(p[at%pageSize:], data[done:])
		if isNew {
			added++
		}
	}
	c.now.size = max(c.now.size, off+int64(len(data)))
	return added
}

// takes reports whether so many bytes written at off would take pages that are not
// there yet.
func (c *content) takes(count int, off int64) bool {
	for i := off / pageSize; i <= (off+int64(count)-1)/pageSize; i++ {
		if c.now.pages[i] == nil {
			return true
		}
	}
	return false
}

// writable returns the page, to be changed.
func (c *content) writable(i int64) (p *page, isNew bool) {
	p = c.now.pages[i]
	switch isNew = p == nil; {
	case isNew:
		p = new(page)
	case p == c.synced.pages[i]:
		p = new(*p) // shared
	}
	c.now.pages[i] = p
	c.dirty[i] = true
	return p, isNew
}

// resize sets the size and returns how many pages it removed.
func (c *content) resize(size int64) (removed int) {
	for i := range c.now.pages {
		if i*pageSize >= size {
			delete(c.now.pages, i)
			c.dirty[i] = true
			removed++
		}
	}
	if last := size / pageSize; size%pageSize != 0 && c.now.pages[last] != nil {
		p, _ := c.writable(last)
		clear(p[size%pageSize:])
	}
	c.now.size = size
	return removed
}

// sync makes the synced content what processes see.
func (c *content) sync() {
	for i := range c.dirty {
		if p := c.now.pages[i]; p != nil {
			c.synced.pages[i] = p
		} else {
			delete(c.synced.pages, i)
		}
	}
	c.synced.size = c.now.size
	c.dirty = map[int64]bool{}
}

// cut makes what processes see what was synced, or, torn, that and a random
// part of the rest.
func (c *content) cut(torn *rand.Rand, loss *Loss) {
	if torn != nil {
		c.tear(torn, loss)
	}
	for i := range c.dirty {
		if c.now.pages[i] != c.synced.pages[i] {
			loss.Pages++
		}
	}
	if c.now.size != c.synced.size {
		loss.Sizes++
	}
	c.now = image{pages: maps.Clone(c.synced.pages), size: c.synced.size}
	c.dirty = map[int64]bool{}
}

// tear writes some of the dirty pages, and the size or not.
func (c *content) tear(torn *rand.Rand, loss *Loss) {
	keepSize := torn.Intn(2) == 0
	limit := c.synced.size
	if keepSize {
		limit = c.now.size
	}
	for _, i := range slices.Sorted(maps.Keys(c.dirty)) {
		keep := torn.Intn(2) == 0
		switch p := c.now.pages[i]; {
		case p == nil && keepSize:
			delete(c.synced.pages, i) // gone with the size
		case p != nil && keep && i*pageSize < limit:
			c.synced.pages[i] = p
			loss.Survived++
		}
	}
	if keepSize {
		c.synced.size = c.now.size
	}
	for i := range c.synced.pages {
		if i*pageSize >= limit {
			delete(c.synced.pages, i)
		}
	}
	if last := limit / pageSize; limit%pageSize != 0 && c.synced.pages[last] != nil {
		p := new(*c.synced.pages[last])
		clear(p[limit%pageSize:])
		c.synced.pages[last] = p
	}
}
