package index

import "hash/maphash"

// Names maps names to the ids of the records that have them. It stores a hash of each name
// instead of the name, which is in the record: about 17 bytes for a name of any length, and
// no pointers for the garbage collector. Lookups compare the record's name, so names with
// equal hashes do not get mixed up.
//
// The hash has a new seed in each process. It affects only where a name is stored, so that
// no client can choose names that collide.
type Names struct {
	seed  maphash.Seed
	parts [nameParts]namePart
	count int
}

// nameParts is the number of parts, chosen by the first byte of the hash. When a part has
// to grow, only that part is moved: 4,000 of 1,000,000 names.
const nameParts = 256

// namePart is a hash table with linear probing, ordered by hash. A hash of 0, which no name
// has, marks a free place, so most unsuccessful lookups read only the hashes, which are
// close together.
type namePart struct {
	hashes []uint32
	ids    []uint64 // parallel to hashes
	count  int
}

// NewNames returns an empty index.
func NewNames() *Names { return &Names{seed: maphash.MakeSeed()} }

// Len returns the number of names.
func (n *Names) Len() int { return n.count }

// part returns the part that the name belongs to, and its hash there.
func (n *Names) part(name string) (*namePart, uint32) {
	h := maphash.String(n.seed, name)
	return &n.parts[h>>56], uint32(h) | 1
}

// Get returns the id of the record with the name, or 0. has reports whether the record with
// that id has the name; it is called for each candidate.
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

// Add adds the name of the record with the id, which must not be 0. Other records may have
// the name, too; Get asks for each of them, in any order.
func (n *Names) Add(name string, id uint64) {
	p, h := n.part(name)
	if p.count+1 > len(p.ids)*4/5 {
		p.grow()
	}
	p.put(h, id)
	n.count++
}

// Remove removes the name of the record with the id, if it is in the index.
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

// home returns the place of the hash. Places are in the order of hashes.
func (p *namePart) home(h uint32) int { return int(uint64(h) * uint64(len(p.ids)) >> 32) }

// next returns the place after at; after the last comes the first.
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

// free frees the place and moves back the entries that it had displaced.
func (p *namePart) free(hole int) {
	p.count--
	for at := p.next(hole); p.hashes[at] != 0; at = p.next(at) {
		// An entry stays if it would otherwise come before its home.
		if home := p.home(p.hashes[at]); p.behind(home, at) < p.behind(hole, at) {
			continue
		}
		p.hashes[hole], p.ids[hole] = p.hashes[at], p.ids[at]
		hole = at
	}
	p.hashes[hole], p.ids[hole] = 0, 0
}

// behind returns the distance from from to at.
func (p *namePart) behind(from, at int) int {
	if at < from {
		at += len(p.ids)
	}
	return at - from
}

// grow makes room for more names.
func (p *namePart) grow() { p.move(p.count + p.count/8 + 4) }

// move moves the names into memory with room for that many names, of which three fifths to
// five eighths are then used.
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
