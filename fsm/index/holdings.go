package index

import (
	"slices"
)

// idleWorkersMax bounds the workers without a claim that are kept: a worker that claims one
// task at a time goes idle after each.
const idleWorkersMax = 1024

// Holdings keeps who holds which claims. Each claim is in two linked lists, those of its
// worker and its type, so that beginning or ending it takes one lookup of the worker.
type Holdings struct {
	places  []holding // places[0] is unused; free places are linked by next of ByWorker
	free    uint32
	workers map[string]*Worker
	// sorted has the same workers. It changes only when one is added or forgotten.
	sorted    Map[string, *Worker]
	idle      workerList // workers without a claim, longest idle first
	idleCount int
}

// holding is a live claim.
type holding struct {
	task   uint64
	worker *Worker
	links  [heldLists]link
}

// link holds a claim's neighbours in a list; 0 = none.
type link struct{ next, prev uint32 }

// The lists that a claim is in.
const (
	ByWorker  = 0
	ByType    = 1
	heldLists = 2
)

// Claims is a list of claims, newest first.
type Claims struct {
	first uint32
	count int
}

// Worker is a worker that holds claims or recently did.
type Worker struct {
	ID         string
	Held       Claims
	next, prev *Worker // in the list of idle workers
}

// workerList is a list of workers.
type workerList struct{ first, last *Worker }

// NewHoldings returns an empty index.
func NewHoldings() Holdings {
	return Holdings{places: make([]holding, 1), workers: map[string]*Worker{}, sorted: NewMap[string, *Worker]()}
}

// Hold adds a claim of the task by the worker, also to the list of its type, and returns
// its place.
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

// LetGo removes a claim, also from the list of its type.
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

// push puts the claim at the front of the list.
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

// workerOf returns the worker, which is about to hold a claim.
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

// rest marks the worker as idle, and forgets the one that is idle longest if there are too
// many.
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

// Workers yields the workers that hold claims or recently did, in the order of their ids
// starting at id, until yield returns false.
func (h *Holdings) Workers(id string, yield func(w *Worker) bool) {
	h.sorted.Ascend(id, func(_ string, w *Worker) bool { return yield(w) })
}

// All yields the tasks of all claims, in no particular order, until yield returns false.
func (h *Holdings) All(yield func(task uint64) bool) {
	for _, p := range h.places {
		if p.worker != nil && !yield(p.task) {
			return
		}
	}
}

// Len returns the number of claims in the list.
func (l *Claims) Len() int { return l.count }

// Tasks calls fn with the tasks of the newest claims in the list, at most most of them.
func (h *Holdings) Tasks(l Claims, which int, most int, fn func(id uint64)) {
	for place := l.first; place != 0 && most > 0; most-- {
		fn(h.places[place].task)
		place = h.places[place].links[which].next
	}
}

// Smallest collects the smallest of the ids added to it.
type Smallest struct {
	IDs  []uint64 // ascending
	Most int
}

// Add adds an id that was not added before.
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
