package trail

// lastEvents knows where each task's newest event is, of all tasks that the
// trail still tells of, removed ones too. It is derived: 8 bytes a task, in
// pages of neighbouring ids.
type lastEvents struct {
	pages map[uint64]*lastPage // by id / lastPageSize; none is empty
	// recent is the page that was used last, nil if none: neighbours come
	// together.
	recent       *lastPage
	recentNumber uint64
}

// lastPageSize is how many neighbouring ids share a page.
const (
	lastPageBits = 6
	lastPageSize = 1 << lastPageBits
	lastPageMask = lastPageSize - 1
)

// lastPage is a page. An event is named by one more than its place in bytes, 0
// is none.
type lastPage struct {
	used int
	ends [lastPageSize]uint64
}

// LastPageBytes is what a page takes.
const LastPageBytes = 8*lastPageSize + 64

func newLastEvents() lastEvents { return lastEvents{pages: map[uint64]*lastPage{}} }

// page returns the page with that number, nil if there is none, for a change.
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

// get returns the task's newest event, 0 if there is none. Readers call it beside each
// other: it changes nothing, not even which page was used last.
func (l *lastEvents) get(id uint64) uint64 {
	if p := l.pages[id>>lastPageBits]; p != nil {
		return p.ends[id&lastPageMask]
	}
	return 0
}

// swap sets the task's newest event, which is not 0, and returns the one before.
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

// clear forgets the task's newest event if it is that one.
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
