package fsm

import (
	"slices"

	"github.com/tidwall/btree"
)

// idleWorkersMax bounds the workers without a claim that are kept: one that
// claims a task after the other comes and goes with each.
const idleWorkersMax = 1024

// holdings is who holds which claims. The claims are in lists of those of one
// worker and those of one type, linked by their places, so that a claim that
// begins or ends costs one look for its worker.
type holdings struct {
	places  []holding // 0 is none; the free ones are linked by their next by worker
	free    uint32
	workers map[string]*worker
	// sorted has the same workers: it changes only when one is new or forgotten.
	sorted    btree.Map[string, *worker]
	idle      workerList // those without a claim, longest first
	idleCount int
}

// holding is a live claim.
type holding struct {
	task   uint64
	worker *worker
	links  [heldLists]link
}

// link is a claim's neighbours in a list, 0 = none.
type link struct{ next, prev uint32 }

// The lists that a claim is in.
const (
	heldByWorker = 0
	heldByType   = 1
	heldLists    = 2
)

// claimList is a list of claims: the newest one, whose neighbour is the one
// before, and how many there are.
type claimList struct {
	first uint32
	count int
}

// worker is one who holds claims, or lately did.
type worker struct {
	id         string
	held       claimList
	next, prev *worker // in the list of those without a claim
}

// workerList is a list of workers.
type workerList struct{ first, last *worker }

// newHoldings returns those of a state without claims.
func newHoldings() holdings {
	return holdings{places: make([]holding, 1), workers: map[string]*worker{}}
}

// hold adds a live claim of the task, which is of that type, and returns its
// place.
func (h *holdings) hold(ts *typeState, t *Task) (place uint32) {
	if place = h.free; place != 0 {
		h.free = h.places[place].links[heldByWorker].next
	} else {
		place = uint32(len(h.places))
		h.places = append(h.places, holding{})
	}
	w := h.workerOf(t.WorkerID)
	h.places[place] = holding{task: t.ID, worker: w}
	h.push(&w.held, heldByWorker, place)
	h.push(&ts.held, heldByType, place)
	return place
}

// letGo removes a claim of a task of that type.
func (h *holdings) letGo(ts *typeState, place uint32) {
	w := h.places[place].worker
	h.unlink(&w.held, heldByWorker, place)
	h.unlink(&ts.held, heldByType, place)
	h.places[place] = holding{links: [heldLists]link{heldByWorker: {next: h.free}}}
	h.free = place
	if w.held.count == 0 {
		h.rest(w)
	}
}

// push puts the claim in front of the list.
func (h *holdings) push(l *claimList, which int, place uint32) {
	h.places[place].links[which] = link{next: l.first}
	if l.first != 0 {
		h.places[l.first].links[which].prev = place
	}
	l.first = place
	l.count++
}

func (h *holdings) unlink(l *claimList, which int, place uint32) {
	at := h.places[place].links[which]
	if at.prev == 0 {
		l.first = at.next
	} else {
		h.places[at.prev].links[which].next = at.next
	}
	if at.next != 0 {
		h.places[at.next].links[which].prev = at.prev
	}
	l.count--
}

// workerOf returns the worker, who is about to hold a claim.
func (h *holdings) workerOf(id string) *worker {
	w := h.workers[id]
	switch {
	case w == nil:
		w = &worker{id: id}
		h.workers[id] = w
		h.sorted.Set(id, w)
	case w.held.count == 0:
		h.idle.remove(w)
		h.idleCount--
	}
	return w
}

// rest notes that the worker holds nothing any more, and forgets the one of whom
// that is true for longest if there are too many.
func (h *holdings) rest(w *worker) {
	h.idle.add(w)
	h.idleCount++
	if h.idleCount <= idleWorkersMax {
		return
	}
	oldest := h.idle.first
	h.idle.remove(oldest)
	h.idleCount--
	delete(h.workers, oldest.id)
	h.sorted.Delete(oldest.id)
}

func (l *workerList) add(w *worker) {
	w.prev = l.last
	if l.last == nil {
		l.first = w
	} else {
		l.last.next = w
	}
	l.last = w
}

func (l *workerList) remove(w *worker) {
	if w.prev == nil {
		l.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		l.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.next, w.prev = nil, nil
}

// tasks calls fn with the tasks of the newest claims in the list, most at most.
func (h *holdings) tasks(l claimList, which int, most int, fn func(id uint64)) {
	for place := l.first; place != 0 && most > 0; most-- {
		fn(h.places[place].task)
		place = h.places[place].links[which].next
	}
}

// smallest keeps the smallest of the ids that it is given.
type smallest struct {
	ids  []uint64 // ascending
	most int
}

// add adds an id that was not given before.
func (s *smallest) add(id uint64) {
	if len(s.ids) == s.most {
		if s.ids[s.most-1] < id {
			return
		}
		s.ids = s.ids[:s.most-1]
	}
	at, _ := slices.BinarySearch(s.ids, id)
	s.ids = slices.Insert(s.ids, at, id)
}
