package batch

import (
	"slices"

	"github.com/claimq/claimq/fsm/command"
)

// laneQueue is a FIFO of pending commands.
type laneQueue struct {
	items     []*pending
	head      int
	abandoned int // number of abandoned commands in items
}

func (q *laneQueue) push(p *pending) {
	if q.head > 1024 && q.head*2 > len(q.items) {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, p)
}

// peek returns the oldest command whose caller still waits, or nil.
func (q *laneQueue) peek() *pending {
	for q.head < len(q.items) {
		if p := q.items[q.head]; p.state != pendingAbandoned {
			return p
		}
		q.abandoned--
		q.drop()
	}
	return nil
}

// compact removes the abandoned commands if they are more than half, so that they do not pile up
// in a lane whose turn does not come.
func (q *laneQueue) compact() {
	if q.abandoned*2 <= len(q.left()) {
		return
	}
	waiting := slices.DeleteFunc(q.left(), func(p *pending) bool { return p.state == pendingAbandoned })
	q.items, q.abandoned = q.items[:q.head+len(waiting)], 0
	if len(waiting) == 0 {
		q.items, q.head = q.items[:0], 0
	}
}

func (q *laneQueue) pop() *pending {
	p := q.peek()
	if p != nil {
		q.drop()
	}
	return p
}

func (q *laneQueue) drop() {
	q.items[q.head] = nil
	q.head++
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
}

// left returns the queued commands, oldest first, without removing them.
func (q *laneQueue) left() []*pending { return q.items[q.head:] }

// packing is an entry while it is packed.
type packing struct {
	lanes          [command.LaneCount][]*pending
	commands, size int
	tasks          int // that may change
}

// packLocked takes the commands of the next entry off the lanes: first each lane's share,
// then the rest in lane order. A large command may open every other entry, so that neither
// large nor small ones starve.
func (b *Batcher) packLocked() []*pending {
	if b.count == 0 {
		return nil
	}
	var k packing
	b.lastLarge = !b.lastLarge && b.openLargeLocked(&k)
	for l := range command.LaneCount {
		b.fillLocked(&k, l, laneShare[l])
	}
	for l := range command.LaneCount {
		b.fillLocked(&k, l, 64)
	}
	if k.commands == 0 {
		// There are only large ones.
		b.lastLarge = b.openLargeLocked(&k)
	}
	items := make([]*pending, 0, k.commands)
	for l := range k.lanes {
		items = append(items, k.lanes[l]...)
	}
	return items
}

// openLargeLocked opens an entry with the longest waiting large command at the head of a
// lane. It reports whether there is one.
func (b *Batcher) openLargeLocked(k *packing) bool {
	oldest := command.LaneCount
	for l := range command.LaneCount {
		p := b.lanes[l].peek()
		if p == nil || !p.large() || !b.mayTakeLocked(l, p) {
			continue
		}
		if oldest == command.LaneCount || p.seq < b.lanes[oldest].peek().seq {
			oldest = l
		}
	}
	if oldest == command.LaneCount {
		return false
	}
	b.takeLocked(k, oldest)
	return true
}

// fillLocked takes commands of lane l while they fit and the lane has less than share/64 of
// the entry.
func (b *Batcher) fillLocked(k *packing, l command.Lane, share int) {
	count, size := len(k.lanes[l]), 0
	for _, p := range k.lanes[l] {
		size += len(p.buf)
	}
	for {
		p := b.lanes[l].peek()
		switch {
		case p == nil, p.large(), !b.mayTakeLocked(l, p):
			return
		case k.commands >= entryCommandsMax, k.size+len(p.buf) > entryBytesMax, k.tasks+p.tasks > entryTasksMax:
			return
		case count >= entryCommandsMax*share/64, count > 0 && size+len(p.buf) > entryBytesMax*share/64:
			return
		}
		count++
		size += len(p.buf)
		b.takeLocked(k, l)
	}
}

// mayTakeLocked keeps an expiry behind every settle and extend received before it.
func (b *Batcher) mayTakeLocked(l command.Lane, p *pending) bool {
	if l != command.LaneExpire {
		return true
	}
	settle := b.lanes[command.LaneSettle].peek()
	return settle == nil || settle.seq > p.seq
}

func (b *Batcher) takeLocked(k *packing, l command.Lane) {
	p := b.lanes[l].pop()
	p.state = pendingTaken
	b.countLocked(p, -1)
	k.lanes[l] = append(k.lanes[l], p)
	k.commands++
	k.size += len(p.buf)
	k.tasks += p.tasks
}
