package fsm

import (
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// Answers is memory that the results of one entry at a time are made of, again
// and again.
type Answers struct{ memory *answers }

// NewAnswers returns memory for the results of an entry.
func NewAnswers() Answers { return Answers{newAnswers(slabReused, slabSpares)} }

// answers is the memory that the results of entries are made of, and what their
// commands are decoded into.
type answers struct {
	commands  *command.Scratch // the machine's
	results   slab[Result]
	submitted slab[Submitted]
	tasks     slab[record.Task]
	claims    slab[Claim]
	leases    []command.Lease // what an entry began, empty
	ended     []uint64        // what an entry ended, empty
}

// How many elements a slab allocates at a time: few where callers keep them, for
// one that is kept keeps its neighbours; those of most entries where they are
// used again and again. Every slab begins with few and doubles.
const (
	slabKept   = 16
	slabReused = 1024
)

// slabSpares bounds the allocations that a slab keeps beside its newest to use them
// again: with it there are elements for 8,192 tasks of one entry, of at most 10,000.
const slabSpares = 7

func newAnswers(size, spares int) *answers {
	return &answers{
		commands:  new(command.Scratch),
		results:   slab[Result]{size: size, spares: spares},
		submitted: slab[Submitted]{size: size, spares: spares},
		tasks:     slab[record.Task]{size: size, spares: spares},
		claims:    slab[Claim]{size: size, spares: spares},
	}
}

// reset takes back all that was handed out.
func (a *answers) reset() {
	a.results.reset()
	a.submitted.reset()
	a.tasks.reset()
	a.claims.reset()
}

// slab hands out elements of larger allocations.
type slab[T any] struct {
	size   int   // of an allocation
	spares int   // how many are kept beside the newest one for after a reset
	all    []T   // the newest one
	used   int   // of it
	full   [][]T // those before it that are kept
	spare  [][]T // those that come next, at their zero values
}

// take returns n elements at their zero values.
func (s *slab[T]) take(n int) []T {
	if n > s.size {
		return make([]T, n)
	}
	if s.used+n > len(s.all) {
		s.grow(n)
	}
	taken := s.all[s.used : s.used+n : s.used+n]
	s.used += n
	return taken
}

// grow goes on with another allocation, of n elements at least. Those that are not of
// the full size yet are not kept.
func (s *slab[T]) grow(n int) {
	last := len(s.spare) - 1
	if len(s.all) == s.size && (last >= 0 || len(s.full) < s.spares) {
		s.full = append(s.full, s.all)
	}
	s.used = 0
	if last < 0 {
		s.all = make([]T, min(s.size, max(n, 2*len(s.all), slabKept)))
		return
	}
	s.all, s.spare = s.spare[last], s.spare[:last]
}

// reset takes back what was handed out. It must not be read any more.
func (s *slab[T]) reset() {
	clear(s.all[:s.used]) // they hold on to what users sent
	s.used = 0
	for _, used := range s.full {
		clear(used)
		s.spare = append(s.spare, used)
	}
	s.full = s.full[:0]
}

// copyOf returns a copy for a result. It shares byte slices and the log, which
// are never changed in place.
func (m *Machine) copyOf(t *record.Task) *record.Task {
	c := &m.answers.tasks.take(1)[0]
	*c = *t
	return c
}

// refused returns the refusal that the task stands for.
func (m *Machine) refused(code Code, t *record.Task) Result {
	return Result{Code: code, Task: m.copyOf(t)}
}

// oneClaim is the answer that holds the claimed task.
func (m *Machine) oneClaim(t *record.Task) Result {
	claims := m.answers.claims.take(1)
	claims[0] = Claim{Task: *t, Token: t.Token, Live: true}
	return Result{Task: &claims[0].Task, Claims: claims}
}
