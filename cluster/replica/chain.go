package replica

import (
	"fmt"
	"hash/crc32"
)

// chainPointsMax is the number of newest entries for which a node knows its chain: several
// seconds of the entries that a leader's disk allows, in 256 KiB.
const chainPointsMax = 16_384

// chainLink returns the chain after applying an entry. The chain is a checksum of all entries
// applied, in order: two nodes with the same chain at an index have applied the same up to there.
// It is saved with the state, and 0 before the first entry.
//
// A link is the splitmix64 finalizer (Steele, Lea and Flood, 2014) over the previous chain, the
// index, the term, and the length and CRC32C of the entry, one by one. For a given entry it is a
// bijection, so chains that differ stay different whatever is applied next.
func chainLink(chain, index, term uint64, entry []byte) uint64 {
	chain = mix64(mix64(chain) + index)
	chain = mix64(chain + term)
	return mix64(chain + uint64(len(entry))<<32 + uint64(crc32.Checksum(entry, crc32.MakeTable(crc32.Castagnoli))))
}

// mix64 is a bijection of 64 bits.
func mix64(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// ChainPoint is a node's chain after the entry at Index.
type ChainPoint struct {
	Index uint64
	Chain uint64
}

// String returns the chain in the form in which it is reported and compared.
func (p ChainPoint) String() string { return fmt.Sprintf("%016x", p.Chain) }

// chainPoints holds the points at the last chainPointsMax entries, and at the snapshot restored
// before them. It is never empty.
type chainPoints struct {
	points []ChainPoint // a ring once it is full
	oldest int          // 0 until then
}

// restart drops all points and adds p.
func (c *chainPoints) restart(p ChainPoint) { c.points, c.oldest = append(c.points[:0], p), 0 }

// add adds a point, whose index must be higher than all others'.
func (c *chainPoints) add(p ChainPoint) {
	if len(c.points) < chainPointsMax {
		c.points = append(c.points, p)
		return
	}
	c.points[c.oldest] = p
	c.oldest = (c.oldest + 1) % len(c.points)
}

func (c *chainPoints) newest() ChainPoint {
	return c.points[(c.oldest+len(c.points)-1)%len(c.points)]
}

// at returns the newest point at or below index; ok is false if it has been dropped.
func (c *chainPoints) at(index uint64) (p ChainPoint, ok bool) {
	i, above := 0, len(c.points)
	for i < above { // the first above index is in [i, above]
		middle := (i + above) / 2
		if c.points[(c.oldest+middle)%len(c.points)].Index <= index {
			i = middle + 1
		} else {
			above = middle
		}
	}
	if i == 0 {
		return p, false
	}
	return c.points[(c.oldest+i-1)%len(c.points)], true
}

// NewestChain returns the point at the last entry applied.
func (r *Replica) NewestChain() ChainPoint {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.chain.newest()
}

// ChainAt returns this node's chain at index, or "" if it has not reached it, has no state, or no
// longer knows.
func (r *Replica) ChainAt(index uint64) string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.absent.Load() || r.applied.Load() < index {
		return ""
	}
	p, ok := r.chain.at(index)
	if !ok {
		return ""
	}
	return p.String()
}
