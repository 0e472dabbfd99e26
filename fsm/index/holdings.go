package index

import (
	"slices"

	"github.com/claimq/claimq/fsm/sorted"
)

// idleWorkersMax bounds the workers without a claim that are kept: one that
// claims a task after the other comes and goes with each.
const idleWorkersMax = 1024

// Holdings is who holds which claims. The claims are in lists of those of one
// worker and those of one type, linked by their places, so that a claim that
// begins or ends costs one look for its worker.
type Holdings struct {
	places  []holding // 0 is none; the free ones are linked by their next by worker
	free    uint32
	workers map[string]*Worker
	// sorted has the same workers: it changes only when one is new or forgotten.
	sorted    sorted.Map[string, *Worker]
	idle      workerList // those without a claim, longest first
	idleCount int
}

// holding is a live claim.
type holding struct {
	task   uint64
	worker *Worker
	links  [heldLists]link
}

// link is a claim's neighbours in a list, 0 = none.
type link struct{ next, prev uint32 }

// The lists that a claim is in.
const (
	ByWorker  = 0
	ByType    = 1
	heldLists = 2
)

// Claims is a list of claims: the newest one, whose neighbour is the one
// before, and how many there are.
type Claims struct {
	first uint32
	count int
}

// Worker is one who holds claims, or lately did.
type Worker struct {
	ID         string
	Held       Claims
	next, prev *Worker // in the list of those without a claim
}

// workerList is a list of workers.
type workerList struct{ first, last *Worker }

// NewHoldings returns those of a state without claims.
func NewHoldings() Holdings {
	return Holdings{places: make([]holding, 1), workers: map[string]*Worker{}, sorted: sorted.NewMap[string, *Worker]()}
}

// Hold adds a live claim of the task by the worker, also to the list of its type, and
// returns its place.
func (h *Holdings) Hold(ofType *Claims, workerID string, task uint64) (place uint32) {
	if place = h.free; place != 0 {
		h.free = h.places[place].links[ByWorker].next
	} else {
		place = uint32(len(h.places))
		h.places = append(h.places, holding{})
	}
	w := h.workerOf(workerID)
	h.places[place] = holding{task: task, worker: w}
	h.push(&w.Held, ByWorker, place)
	h.push(ofType, ByType, place)
	return place
}

// LetGo removes a claim, which is also in the list of its type.
func (h *Holdings) LetGo(ofType *Claims, place uint32) {
	w := h.places[place].worker
	h.unlink(&w.Held, ByWorker, place)
	h.unlink(ofType, ByType, place)
	h.places[place] = holding{links: [heldLists]link{ByWorker: {next: h.free}}}
	h.free = place
	if w.Held.count == 0 {
		h.rest(w)
	}
}

// push puts the claim in front of the list.
func (h *Holdings) push(l *Claims, which int, place uint32) {
	h.places[place].links[which] = link{next: l.first}
	if l.first != 0 {
		h.places[l.first].links[which].prev = place
	}
	l.first = place
	l.count++
}

func (h *Holdings) unlink(l *Claims, which int, place uint32) {
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
func (h *Holdings) workerOf(id string) *Worker {
	w := h.workers[id]
	switch {
	case w == nil:
		w = &Worker{ID: id}
		h.workers[id] = w
		h.sorted.Set(id, w)
	case w.Held.count == 0:
		h.idle.remove(w)
		h.idleCount--
	}
	return w
}

// rest notes that the worker holds nothing any more, and forgets the one of whom
// that is true for longest if there are too many.
func (h *Holdings) rest(w *Worker) {
	h.idle.add(w)
	h.idleCount++
	if h.idleCount <= idleWorkersMax {
		return
	}
	oldest := h.idle.first
	h.idle.remove(oldest)
	h.idleCount--
	delete(h.workers, oldest.ID)
	h.sorted.Delete(oldest.ID)
}

func (l *workerList) add(w *Worker) {
	w.prev = l.last
	if l.last == nil {
		l.first = w
	} else {
		l.last.next = w
	}
	l.last = w
}

func (l *workerList) remove(w *Worker) {
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

// Workers yields the workers that hold claims or lately did, by their ids from
// that one on, until yield returns false.
func (h *Holdings) Workers(id string, yield func(w *Worker) bool) {
	h.sorted.Ascend(id, func(_ string, w *Worker) bool { return yield(w) })
}

// Len returns how many claims are in the list.
func (l *Claims) Len() int { return l.count }

// Tasks calls fn with the tasks of the newest claims in the list, most at most.
func (h *Holdings) Tasks(l Claims, which int, most int, fn func(id uint64)) {
	for place := l.first; place != 0 && most > 0; most-- {
		fn(h.places[place].task)
		place = h.places[place].links[which].next
	}
}

// Smallest keeps the smallest of the ids that it is given.
type Smallest struct {
	IDs  []uint64 // ascending
	Most int
}

// Add adds an id that was not given before.
func (s *Smallest) Add(id uint64) {
	if len(s.IDs) == s.Most {
		if s.IDs[s.Most-1] < id {
			return
		}
		s.IDs = s.IDs[:s.Most-1]
	}
	at, _ := slices.BinarySearch(s.IDs, id)
	s.IDs = slices.Insert(s.IDs, at, id)
}
