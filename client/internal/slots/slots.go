// Package slots counts how many more tasks a worker may claim, in total and of each type, and tracks its attempts: which
// handlers run, whose claims are to be extended, and which are no longer waited for. It claims nothing itself.
package slots

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// ClaimMax bounds the tasks of one claim, as the server does.
const ClaimMax = 1_000

// interruptPause is the time for which a type must have room before a waiting claim is restarted to ask for it,
// because a claim within a complete takes the room of several types for a moment.
const interruptPause = 100 * time.Millisecond

// Slots counts how many more tasks a worker may claim, in total and of each type. Before a claim is sent it takes a
// slot for each task that the claim may return, of each type that it names, so that the worker never holds more tasks
// than it can run. It is safe for concurrent use.
type Slots struct {
	names []string // of all types, sorted

	mu      sync.Mutex
	free    int // in total; negative after a Resize, until enough tasks are done
	types   []*typeSlots
	byName  map[string]*typeSlots
	changed chan struct{} // has an element if a slot became free
	waiting *interrupt    // of the waiting claim; nil: no claim waits, or it names all types
}

// typeSlots counts the slots of a type with its own limit.
type typeSlots struct {
	name string
	free int
}

// Room is a number of slots taken for a claim: N in total, and N of each of the limited types.
type Room struct {
	N       int
	Types   []string // the types to ask for
	limited []*typeSlots
}

// interrupt can end a waiting claim that does not name all types.
type interrupt struct {
	asked  *Room
	cancel func()
	timer  *time.Timer
}

// New returns concurrency slots for tasks of the types. A type's number, unless it is 0, limits how many of its tasks
// there may be at once.
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

// Names returns the names of all types, sorted. The caller must not change them.
func (s *Slots) Names() []string { return s.names }

// Changed returns a channel that has an element when a slot became free.
func (s *Slots) Changed() <-chan struct{} { return s.changed }

// Take takes room for as many tasks as there are slots, whichever of the named types they will have. ok is false if
// there is no free slot.
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

// Resize adds slots, or removes them if by is negative; those in use are removed once their tasks are done.
func (s *Slots) Resize(by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free += by
	s.freed()
}

// Widen turns the slot of a task into room for one task of any type that has a free slot, or of the same type. The
// room is empty if the slot has to be removed.
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

// Fill uses one of the room's slots for a task. It returns false if the room has no slot left for the type.
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

// Narrow undoes Widen: the slot belongs to the task again.
func (s *Slots) Narrow(r *Room, taskType string) {
	s.Fill(r, taskType)
}

// GiveBack frees the remaining slots of the room.
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

// freed tells the claim loop that a slot is free. The caller holds the lock.
func (s *Slots) freed() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
	if i := s.waiting; i != nil && i.timer == nil && s.unasked(i) {
		i.timer = time.AfterFunc(interruptPause, func() { s.interrupt(i) })
	}
}

// unasked reports whether a type has room that i does not ask for. The caller holds the lock.
func (s *Slots) unasked(i *interrupt) bool {
	return slices.ContainsFunc(s.types, func(t *typeSlots) bool {
		return t.free > 0 && !slices.Contains(i.asked.limited, t)
	})
}

// interrupt ends the waiting claim if it still waits and there is more to ask for.
func (s *Slots) interrupt(i *interrupt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i.timer = nil
	if s.waiting == i && s.unasked(i) {
		i.cancel()
	}
}

// Watch calls cancel when a type that asked does not name gets room, until the returned function is called. There is
// at most one watch at a time.
func (s *Slots) Watch(asked *Room, cancel func()) (end func()) {
	if len(asked.limited) == len(s.types) {
		return func() {}
	}
	i := &interrupt{asked: asked, cancel: cancel}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = i
	s.freed() // there may be room already
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.waiting = nil
		if i.timer != nil {
			i.timer.Stop()
		}
	}
}
