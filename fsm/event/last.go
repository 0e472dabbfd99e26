package event

// lastEvents has the place of each task's newest event, for all tasks with events in the
// trail, including removed tasks. It is derived and takes 8 bytes a task, in pages of
// neighbouring ids.
type lastEvents struct {
	pages map[uint64]*lastPage // by id / lastPageSize; never empty pages
	// recent is the page used last, or nil, because neighbouring tasks are often used
	// together.
	recent       *lastPage
	recentNumber uint64
}

// lastPageSize is the number of neighbouring ids on a page.
const (
	lastPageBits = 6
	lastPageSize = 1 << lastPageBits
	lastPageMask = lastPageSize - 1
)

// lastPage is a page. ends has one more than the place of an event in bytes, or 0.
type lastPage struct {
	used int
	ends [lastPageSize]uint64
}

// LastPageBytes is the memory of a page.
const LastPageBytes = 8*lastPageSize + 64

func newLastEvents() lastEvents { return lastEvents{pages: map[uint64]*lastPage{}} }

// page returns the page with that number for a change, or nil.
func (l *lastEvents) page(number uint64) *lastPage {
	if l.recent != nil && l.recentNumber == number {
		return l.recent
	}
	p := l.pages[number]
	if p != nil {
		l.recent, l.recentNumber = p, number
	}
	return p
}

// get returns the task's newest event, or 0. Concurrent readers call it, so it must not
// change anything, not even recent.
func (l *lastEvents) get(id uint64) uint64 {
	if p := l.pages[id>>lastPageBits]; p != nil {
		return p.ends[id&lastPageMask]
	}
	return 0
}

// swap sets the task's newest event, which must not be 0, and returns the previous one.
func (l *lastEvents) swap(id, end uint64) (before uint64) {
	p := l.page(id >> lastPageBits)
	if p == nil {
		p = &lastPage{}
		l.pages[id>>lastPageBits] = p
		l.recent, l.recentNumber = p, id>>lastPageBits
	}
	before = p.ends[id&lastPageMask]
	p.ends[id&lastPageMask] = end
	if before == 0 {
		p.used++
	}
	return before
}

// clear removes the task's newest event if it is that one.
func (l *lastEvents) clear(id, end uint64) {
	p := l.page(id >> lastPageBits)
	if p == nil || end == 0 || p.ends[id&lastPageMask] != end {
		return
	}
	p.ends[id&lastPageMask] = 0
	if p.used--; p.used == 0 {
		delete(l.pages, id>>lastPageBits)
		l.recent = nil
	}
}
