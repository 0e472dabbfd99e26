package fsm

import (
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// answerBytesMax bounds the tasks' own bytes in one answer: params, payload, results and
// errors. An answer always has room for one task. A batch is one answer.
const answerBytesMax = 8 << 20

// Answers is reusable memory for the results of one entry at a time.
type Answers struct{ memory *answers }

// NewAnswers returns memory for the results of an entry.
func NewAnswers() Answers { return Answers{newAnswers(slabReused, slabSpares)} }

// answers holds the memory for the results of entries and for their decoded commands.
type answers struct {
	commands  *command.Scratch // owned by the machine
	results   slab[Result]
	submitted slab[Submitted]
	tasks     slab[record.Task]
	claims    slab[Claim]
	leases    []command.Lease // leases begun by the entry; emptied after it
	ended     []uint64        // tasks ended by the entry; emptied after it
	// unread says that results are not read after their command, so that they need no copies
	// of tasks.
	unread bool
}

// The number of elements that a slab allocates at a time. It is small where callers keep
// elements, because keeping one keeps the whole allocation alive, and large enough for most
// entries where memory is reused. Every slab starts small and doubles.
const (
	slabKept   = 16
	slabReused = 1024
)

// slabSpares bounds the allocations that a slab keeps for reuse in addition to its newest.
// They hold 8,192 tasks; an entry has at most 10,000.
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

// reset takes back everything handed out.
func (a *answers) reset() {
	a.results.reset()
	a.submitted.reset()
	a.tasks.reset()
	a.claims.reset()
}

// slab hands out elements of larger allocations.
type slab[T any] struct {
	size   int   // elements of a full allocation
	spares int   // how many older allocations are kept for reuse
	all    []T   // the newest allocation
	used   int   // elements of all that are handed out
	full   [][]T // older full allocations that are kept
	spare  [][]T // cleared allocations to use next
}

// take returns n zeroed elements.
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

// grow continues with another allocation of at least n elements. Allocations below the full
// size are not kept.
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

// reset takes back what was handed out. Callers must not read it any more.
func (s *slab[T]) reset() {
	clear(s.all[:s.used]) // so that they do not keep user data alive
	s.used = 0
	for _, used := range s.full {
		clear(used)
		s.spare = append(s.spare, used)
	}
	s.full = s.full[:0]
}

// shownIn adds the task to an answer, whose size so far is *answered. If the answer is full, it
// returns a copy without the task's own data.
func shownIn(answered *int, t *record.Task) *record.Task {
	*answered += record.AnswerBytes(t)
	if *answered <= answerBytesMax {
		return t
	}
	short := *t
	short.DropData()
	return &short
}
