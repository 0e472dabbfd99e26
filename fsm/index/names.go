package index

import "hash/maphash"

// Names leads from names to the ids of the records that have them. It holds a hash of
// each name in place of the name, which the record has: some 17 bytes a name, however
// long it is, and nothing for the collector to look at. Whoever looks for a name says
// of which record it is, so names of one hash are told apart.
//
// The hash's seed is another in each process: it decides where a name lies and nothing
// that anybody sees, and nobody can choose names that lie in one place.
type Names struct {
	seed  maphash.Seed
	parts [nameParts]namePart
	count int
}

// nameParts is how many parts there are, by the first byte of the hash: so that no more
// than a part is moved at once when there is no room, 4,000 of 1,000,000 names.
const nameParts = 256

// namePart holds names in the order of their hashes as far as there is room, each at
// the place of its hash or behind it. A place is free whose hash is 0, which none has: so
// most looks for a name that is not there read hashes alone, which are close together.
type namePart struct {
	hashes []uint32
	ids    []uint64 // as long
	count  int
}

// NewNames returns an empty index.
func NewNames() *Names { return &Names{seed: maphash.MakeSeed()} }

// Len returns how many names there are.
func (n *Names) Len() int { return n.count }

// part returns where the name belongs: the part, and its hash there.
func (n *Names) part(name string) (*namePart, uint32) {
	h := maphash.String(n.seed, name)
	return &n.parts[h>>56], uint32(h) | 1
}

// Get returns the id of the record that has the name, 0 if none has. has reports
// whether the record of that id has it: it is asked of those that may.
func (n *Names) Get(name string, has func(id uint64) bool) uint64 {
	p, h := n.part(name)
	if p.count == 0 {
		return 0
	}
	for at := p.home(h); p.hashes[at] != 0; at = p.next(at) {
		if p.hashes[at] == h && has(p.ids[at]) {
			return p.ids[at]
		}
	}
	return 0
}

// Add adds the name of the record with the id, above 0. No other record in the index
// may have it.
func (n *Names) Add(name string, id uint64) {
	p, h := n.part(name)
	if p.count+1 > len(p.ids)*4/5 {
		p.grow()
	}
	p.put(h, id)
	n.count++
}

// Remove removes the name of the record with the id, if it is there.
func (n *Names) Remove(name string, id uint64) {
	p, h := n.part(name)
	if p.count == 0 {
		return
	}
	at := p.home(h)
	for ; p.hashes[at] != h || p.ids[at] != id; at = p.next(at) {
		if p.hashes[at] == 0 {
			return
		}
	}
	p.free(at)
	n.count--
	if p.count < len(p.ids)/3 {
		p.move(p.count)
	}
}

// home returns the place of the hash: places grow with hashes.
func (p *namePart) home(h uint32) int { return int(uint64(h) * uint64(len(p.ids)) >> 32) }

// next returns the place behind at; the first is behind the last.
func (p *namePart) next(at int) int {
	if at++; at == len(p.ids) {
		return 0
	}
	return at
}

func (p *namePart) put(h uint32, id uint64) {
	at := p.home(h)
	for p.hashes[at] != 0 {
		at = p.next(at)
	}
	p.hashes[at], p.ids[at] = h, id
	p.count++
}

// free frees the place, and moves what stands behind it for want of room.
func (p *namePart) free(hole int) {
	p.count--
	for at := p.next(hole); p.hashes[at] != 0; at = p.next(at) {
		// One stays that would come before its home.
		if home := p.home(p.hashes[at]); p.behind(home, at) < p.behind(hole, at) {
			continue
		}
		p.hashes[hole], p.ids[hole] = p.hashes[at], p.ids[at]
		hole = at
	}
	p.hashes[hole], p.ids[hole] = 0, 0
}

// behind returns how many places at is behind from.
func (p *namePart) behind(from, at int) int {
	if at < from {
		at += len(p.ids)
	}
	return at - from
}

// grow makes room for more names.
func (p *namePart) grow() { p.move(p.count + p.count/8 + 4) }

// move moves the names to memory with room for so many: three fifths of it to five
// eighths are used then.
func (p *namePart) move(names int) {
	old := *p
	*p = namePart{}
	if names == 0 {
		return
	}
	places := names + names/2 + 2
	p.hashes, p.ids = make([]uint32, places), make([]uint64, places)
	for at, id := range old.ids {
		if id != 0 {
			p.put(old.hashes[at], id)
		}
	}
}
