package snapshot

import (
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/table"
)

// HashTurns is after how many hashes of a Hasher every record has been read
// again: each of them reads a part of what did not change, too.
const HashTurns = 16

// HashRun is how many pages, of up to 64 records, or chunks of the trail a Hasher
// reads before it rests: some 0.3 ms.
const HashRun = 16

// hashTurn says which of what did not change is read again, by numbers that
// stay the same.
type hashTurn uint64

// noTurn is that of nothing.
const noTurn hashTurn = HashTurns

func (t hashTurn) has(number uint64) bool { return number%HashTurns == uint64(t) }

// Hasher computes the state hashes of captures, one after the other, at the
// cost of what changed in between. Of the captures of one machine it remembers
// the sums of pages of records, 32 bytes for each page of the last capture: half
// a byte a task as long as most are there.
//
// What no command has changed may still have: memory rots. So with each hash a
// sixteenth of the other pages is read again, each of them with one in 16.
//
// It is not safe for concurrent use.
type Hasher struct {
	breaks   breaks
	tasks    pageSums[record.Task]
	requests pageSums[record.Request]
	gone     pageSums[record.Gone]
	turn     hashTurn
}

// NewHasher returns one that remembers nothing: its first hash reads all. It calls
// rest, if not nil, each time it has read for a moment, in which it held up whoever
// waits for the processor.
func NewHasher(rest func()) *Hasher {
	return &Hasher{
		breaks: breaks{rest: rest},
		tasks: pageSums[record.Task]{kind: record.KindTask, appendRecord: func(b []byte, _ uint64, t *record.Task) []byte {
			return record.AppendTask(b, t)
		}},
		requests: pageSums[record.Request]{kind: record.KindRequest, appendRecord: record.AppendRequest},
		gone:     pageSums[record.Gone]{kind: record.KindGone, appendRecord: record.AppendGone},
	}
}

// Hash returns what s.Hash returns: of captures in any order, of other machines
// too. Rotten counts the pages and the chunks of the trail that were read again
// and are not what they were, though no command changed them: faulty memory, or
// a bug. The hash is of what they are now.
func (h *Hasher) Hash(s *Snapshot) (hash [16]byte, rotten int) {
	h.turn = (h.turn + 1) % HashTurns
	return h.hash(s, h.turn)
}

func (h *Hasher) hash(s *Snapshot, turn hashTurn) (hash [16]byte, rotten int) {
	var sum StateHash
	s.addSmallTo(&sum)
	rotten += h.tasks.addTo(&sum, &s.of.Tasks, turn, &h.breaks)
	rotten += h.requests.addTo(&sum, &s.of.Requests, turn, &h.breaks)
	rotten += h.gone.addTo(&sum, &s.of.Gone, turn, &h.breaks)
	rotten += s.of.Trail.AddTo(trailHash{stateHash: &sum, turn: turn, breaks: &h.breaks})
	return sum.Sum(), rotten
}

// breaks are the rests between the readings of a Hasher.
type breaks struct {
	rest func()
	read int // pages and chunks, ever
}

// noted counts one that was read, and rests if it is time.
func (b *breaks) noted() {
	if b.read++; b.read%HashRun == 0 && b.rest != nil {
		b.rest()
	}
}

// trailHash is how the chunks of a trail are hashed.
type trailHash struct {
	stateHash *StateHash
	turn      hashTurn
	breaks    *breaks
}

func (h trailHash) AddSum(sum [16]byte) { h.stateHash.addSum(sum) }

func (h trailHash) SumOf(packed []byte) [16]byte {
	var one StateHash
	one.Add(record.KindTrail, packed)
	return one.Sum()
}

func (h trailHash) IsDue(number uint64) bool { return h.turn.has(number) }
func (h trailHash) Noted()                   { h.breaks.noted() }

// addSmallTo adds the records to the hash that are neither in tables nor of the
// trail: some thousands at most.
func (s *Snapshot) addSmallTo(hash *StateHash) {
	b := record.AppendHeader(nil, &s.of.Header, &s.of.Trail.Header, s.counts())
	hash.Add(record.KindHeader, b)
	for _, n := range s.of.Nodes {
		b = record.AppendNode(b[:0], n)
		hash.Add(record.KindNode, b)
	}
	for _, t := range s.of.Types {
		b = record.AppendType(b[:0], t)
		hash.Add(record.KindType, b)
	}
	for _, v := range s.of.Schedules {
		b = record.AppendSchedule(b[:0], v)
		hash.Add(record.KindSchedule, b)
	}
}

// pageSums remembers what the pages of a table add to the state hash.
type pageSums[T any] struct {
	kind         record.Kind
	appendRecord func(b []byte, id uint64, packed *T) []byte

	table table.Origin // of the last view
	sums  []pageSum    // of the last view, by number

	page   StateHash // of the page that is read
	packed []byte
}

// pageSum is the sum of the hashes of a page's records, as of an epoch.
type pageSum struct {
	number, epoch uint64
	sum           [16]byte
}

// addTo adds the view's records to the hash. Pages are read that are not those
// of the last view, and those whose turn it is; it returns how many of the latter
// have another sum than they had.
func (c *pageSums[T]) addTo(hash *StateHash, v *table.View[T], turn hashTurn, breaks *breaks) (rotten int) {
	if of := v.Origin(); c.table != of { // other tables have other epochs
		c.table, c.sums = of, nil
	}
	known := c.sums
	pages := v.Pages()
	sums := make([]pageSum, len(pages))
	for i, p := range pages {
		number, epoch := p.Number(), p.Epoch()
		for len(known) > 0 && known[0].number < number {
			known = known[1:]
		}
		same := len(known) > 0 && known[0].number == number && known[0].epoch == epoch
		if same {
			sums[i] = known[0]
		}
		if !same || turn.has(number) {
			sums[i] = pageSum{number: number, epoch: epoch, sum: c.sumOf(p)}
			breaks.noted()
		}
		if same && sums[i].sum != known[0].sum {
			rotten++
		}
		hash.addSum(sums[i].sum)
	}
	c.sums = sums
	return rotten
}

// sumOf reads the page.
func (c *pageSums[T]) sumOf(p *table.Page[T]) [16]byte {
	c.page.hi, c.page.lo = 0, 0
	for r := range p.All() {
		if r.Record != nil {
			c.packed = c.appendRecord(c.packed[:0], r.ID, r.Record)
			c.page.Add(c.kind, c.packed)
		} else {
			c.page.Add(c.kind, r.Packed)
		}
	}
	return c.page.Sum()
}
