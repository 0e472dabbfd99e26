package workers

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// phase says when in a call a strike is.
type phase string

// The phases.
const (
	before phase = "before" // it is passed on
	during phase = "during" // it is on its way
	after  phase = "after"  // the answer is there, and has not been passed on
)

var phases = [...]phase{before, during, after}

// anySlot is for strikes at whoever makes the call.
const anySlot = -1

// strike is something that is done at the next call of a kind.
type strike struct {
	call  call
	phase phase
	slot  int // whose call, or anySlot
	// drop says that the answer is not passed on, if it is there.
	drop bool
	// do is called once, by the goroutine that carries the call.
	do func()
	// hit is closed once do has returned.
	hit chan struct{}
}

func (s *strike) String() string {
	text := fmt.Sprintf("%s the %s", s.phase, s.call)
	if s.phase == after && s.drop {
		text += ", its answer dropped"
	}
	return text
}

// strikes are those that wait for their call. It is safe for concurrent use.
type strikes struct {
	mu    sync.Mutex
	armed []*strike
}

// arm has the strike wait for its call.
func (s *strikes) arm(k *strike) {
	k.hit = make(chan struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed = append(s.armed, k)
}

// remove returns the first strike that fits and waits no longer, nil if there is none.
func (s *strikes) remove(fits func(*strike) bool) *strike {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.armed, fits)
	if i < 0 {
		return nil
	}
	k := s.armed[i]
	s.armed = slices.Delete(s.armed, i, i+1)
	return k
}

// take returns the strike at a call of a worker, or nil.
func (s *strikes) take(c call, slot int) *strike {
	return s.remove(func(k *strike) bool { return k.call == c && (k.slot == slot || k.slot == anySlot) })
}

// hitWithin arms the strike and waits until it has been done. It returns false if
// its call did not come in time.
func (s *strikes) hitWithin(ctx context.Context, k *strike, d time.Duration) bool {
	s.arm(k)
	select {
	case <-k.hit:
		return true
	case <-time.After(d):
	case <-ctx.Done():
	}
	if s.remove(func(other *strike) bool { return other == k }) != nil {
		return false
	}
	<-k.hit // a call has it
	return true
}

// at does what the strike does if the call is in its phase. A nil strike does
// nothing.
func (s *strike) at(p phase) {
	if s != nil && s.phase == p {
		s.do()
		close(s.hit)
	}
}
