package lossyfs

import (
	"maps"
	"math/rand"
	"slices"
)

// pageSize is the unit that is lost or survives as a whole.
const pageSize = 4096

// page is never changed while two images share it.
type page [pageSize]byte

// image is the content of a file. Missing pages are zeros.
type image struct {
	pages map[int64]*page
	size  int64 // in bytes. Invariant: zeros from here to the end of the last page
}

// content is a file's content, as seen by processes and as last synced.
type content struct {
	now, durable image
	dirty        map[int64]bool // pages that may differ between the two
}

// synced returns a synced content with this image.
func (m image) synced() content {
	pages := maps.Clone(m.pages)
	if pages == nil {
		m.pages, pages = map[int64]*page{}, map[int64]*page{}
	}
	return content{now: m, durable: image{pages, m.size}, dirty: map[int64]bool{}}
}

// read copies what exists from off on, and returns its length.
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

// write writes data at off and returns the number of added pages.
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

// takes reports whether writing count bytes at off would add pages.
func (c *content) takes(count int, off int64) bool {
	for i := off / pageSize; i <= (off+int64(count)-1)/pageSize; i++ {
		if c.now.pages[i] == nil {
			return true
		}
	}
	return false
}

// writable returns the page for changes.
func (c *content) writable(i int64) (p *page, isNew bool) {
	p = c.now.pages[i]
	switch isNew = p == nil; {
	case isNew:
		p = new(page)
	case p == c.durable.pages[i]:
		p = new(*p) // shared
	}
	c.now.pages[i] = p
	c.dirty[i] = true
	return p, isNew
}

// resize sets the size and returns the number of removed pages.
func (c *content) resize(size int64) (removed int) {
	before := len(c.now.pages)
	for _, i := range c.now.resize(size) {
		c.dirty[i] = true
	}
	return before - len(c.now.pages)
}

// resize sets the size and returns the pages that it removed or changed.
func (m *image) resize(size int64) (changed []int64) {
	for i := range m.pages {
		if i*pageSize >= size {
			delete(m.pages, i)
			changed = append(changed, i)
		}
	}
	if last := size / pageSize; size%pageSize != 0 && m.pages[last] != nil {
		p := new(*m.pages[last])
		clear(p[size%pageSize:])
		m.pages[last] = p
		changed = append(changed, last)
	}
	m.size = size
	return changed
}

// sync makes the current content durable.
func (c *content) sync() {
	for i := range c.dirty {
		if p := c.now.pages[i]; p != nil {
			c.durable.pages[i] = p
		} else {
			delete(c.durable.pages, i)
		}
	}
	c.durable.size = c.now.size
	c.dirty = map[int64]bool{}
}

// cut returns the content after a cut: what was synced or, if torn, also a random part of
// the rest: each page or not, and the size or not.
func (c *content) cut(torn *rand.Rand, loss *Loss) image {
	left := image{pages: maps.Clone(c.durable.pages), size: c.durable.size}
	survives := func() bool { return torn != nil && torn.Intn(2) == 0 }
	keepSize := survives()
	if keepSize {
		left.size = c.now.size
	}
	for _, i := range slices.Sorted(maps.Keys(c.dirty)) {
		keep := survives()
		switch p := c.now.pages[i]; {
		case p == nil && keepSize:
			delete(left.pages, i) // gone with the size
		case p != nil && keep && i*pageSize < left.size:
			left.pages[i] = p
			loss.Survived++
		}
		if c.now.pages[i] != left.pages[i] {
			loss.Pages++
		}
	}
	if c.now.size != left.size {
		loss.Sizes++
	}
	left.resize(left.size)
	return left
}
