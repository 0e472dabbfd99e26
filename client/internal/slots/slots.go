package slots

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// ClaimMax is how many tasks the server gives out in one claim.
const ClaimMax = 1_000

// interruptPause is how long a type that could not be asked for before must have
// room until a claim that waits is begun again with it: a claim within a complete
// takes the room of several types for a moment.
const interruptPause = 100 * time.Millisecond

// Slots says how many more tasks a worker may claim, in all and of each type. A
// slot is taken before a claim is sent, one for each task that the claim may
// bring, of each type that it names: so the worker never holds more than it can
// run. It is safe for concurrent use.
type Slots struct {
	names []string // of all types, sorted

	mu      sync.Mutex
	free    int // in all; below 0 after a Resize, until enough tasks are done
	types   []*typeSlots
	byName  map[string]*typeSlots
	changed chan struct{} // has an element if something became free
	waiting *interrupt    // of the claim that waits; nil: there is none, or it names all types
}

// typeSlots are those of a type with a limit of its own.
type typeSlots struct {
	name string
	free int
}

// Room is a number of slots that were taken for a claim: N in all, and N of each
// of the limited types.
type Room struct {
	N       int
	Types   []string // to ask for
	limited []*typeSlots
}

// interrupt is how a claim that waits, and does not name all types, is ended.
type interrupt struct {
	asked  *Room
	cancel func()
	timer  *time.Timer
}

// New returns concurrency slots for tasks of the types; a type's number, unless
// it is 0, is how many of its tasks there may be at once.
func New(concurrency int, types map[string]int) *Slots {
	s := &Slots{
		names: slices.Sorted(maps.Keys(types)), free: concurrency,
		byName: map[string]*typeSlots{}, changed: make(chan struct{}, 1),
	}
	for _, name := range s.names {
		if n := types[name]; n > 0 && n < concurrency {
			t := &typeSlots{name: name, free: n}
			s.types = append(s.types, t)
			s.byName[name] = t
		}
	}
	return s
}

// Names returns the names of all types, sorted. They must not be changed.
func (s *Slots) Names() []string { return s.names }

// Changed has an element when something became free.
func (s *Slots) Changed() <-chan struct{} { return s.changed }

// Take takes room for as many tasks as there are slots for, each of which may be
// of any type that it names. ok is false if there is none.
func (s *Slots) Take() (r Room, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r = s.typesWithRoom("")
	r.N = min(s.free, ClaimMax)
	for _, t := range r.limited {
		r.N = min(r.N, t.free)
	}
	if r.N <= 0 || len(r.Types) == 0 {
		return Room{}, false
	}
	s.free -= r.N
	for _, t := range r.limited {
		t.free -= r.N
	}
	return r, true
}

// Resize adds by slots, or takes away as many if it is below 0: those of tasks once they are done.
func (s *Slots) Resize(by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free += by
	s.freed()
}

// Widen makes the slot of a task the room for one task of any type that has a
// slot left, or of the same type; for none if the slot is to go.
func (s *Slots) Widen(taskType string) Room {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free < 0 {
		return Room{}
	}
	r := s.typesWithRoom(taskType)
	r.N = 1
	for _, t := range r.limited {
		if t.name != taskType {
			t.free--
		}
	}
	return r
}

// typesWithRoom names the types with free slots, and mine.
func (s *Slots) typesWithRoom(mine string) Room {
	r := Room{Types: s.names, limited: s.types}
	full := func(t *typeSlots) bool { return t.free <= 0 && t.name != mine }
	if !slices.ContainsFunc(s.types, full) {
		return r
	}
	r.limited = slices.DeleteFunc(slices.Clone(s.types), full)
	r.Types = slices.DeleteFunc(slices.Clone(s.names), func(name string) bool {
		t := s.byName[name]
		return t != nil && full(t)
	})
	return r
}

// Fill makes one of the room's slots that of a task. It returns false if the room
// has none left, or not for the type.
func (s *Slots) Fill(r *Room, taskType string) bool {
	if r.N == 0 || !slices.Contains(r.Types, taskType) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r.N--
	for _, t := range r.limited {
		if t.name != taskType {
			t.free++
		}
	}
	s.freed()
	return true
}

// Narrow takes back widen: the slot is that of the task again.
func (s *Slots) Narrow(r *Room, taskType string) {
	s.Fill(r, taskType)
}

// GiveBack frees what is left of the room.
func (s *Slots) GiveBack(r *Room) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free += r.N
	for _, t := range r.limited {
		t.free += r.N
	}
	r.N = 0
	s.freed()
}

// Done frees the slot of a task.
func (s *Slots) Done(taskType string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free++
	if t := s.byName[taskType]; t != nil {
		t.free++
	}
	s.freed()
}

// freed tells the claim loop. The caller holds the lock.
func (s *Slots) freed() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
	if i := s.waiting; i != nil && i.timer == nil && s.unasked(i) {
		i.timer = time.AfterFunc(interruptPause, func() { s.interrupt(i) })
	}
}

// unasked reports whether a type has room that i does not ask for. The caller
// holds the lock.
func (s *Slots) unasked(i *interrupt) bool {
	return slices.ContainsFunc(s.types, func(t *typeSlots) bool {
		return t.free > 0 && !slices.Contains(i.asked.limited, t)
	})
}

// interrupt ends a claim that waits, if it still does and there is more to ask
// for.
func (s *Slots) interrupt(i *interrupt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i.timer = nil
	if s.waiting == i && s.unasked(i) {
		i.cancel()
	}
}

// Watch has cancel called when a type that asked does not name gets room, until
// the returned function is called. At most one watch at a time.
func (s *Slots) Watch(asked *Room, cancel func()) (end func()) {
	if len(asked.limited) == len(s.types) {
		return func() {}
	}
	i := &interrupt{asked: asked, cancel: cancel}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = i
	s.freed() // it may have room by now
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.waiting = nil
		if i.timer != nil {
			i.timer.Stop()
		}
	}
}
