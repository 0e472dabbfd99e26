package workers

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// phase is the time of a strike within a call.
type phase string

// The phases.
const (
	before phase = "before" // before it is forwarded
	during phase = "during" // while it is under way
	after  phase = "after"  // the answer is there, but not forwarded yet
)

var phases = [...]phase{before, during, after}

// anySlot is for strikes at calls of any worker.
const anySlot = -1

// strike is an action at the next call of a kind.
type strike struct {
	call  call
	phase phase
	slot  int // whose call, or anySlot
	// drop means that the answer, if any, is not forwarded.
	drop bool
	// do is called once, by the goroutine that forwards the call.
	do func()
	// hit is closed when do has returned.
	hit chan struct{}
}

func (s *strike) String() string {
	text := fmt.Sprintf("%s the %s", s.phase, s.call)
	if s.phase == after && s.drop {
		text += ", its answer dropped"
	}
	return text
}

// strikes holds the strikes that wait for their calls. It is safe for concurrent use.
type strikes struct {
	mu    sync.Mutex
	armed []*strike
}

// arm lets the strike wait for its call.
func (s *strikes) arm(k *strike) {
	k.hit = make(chan struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed = append(s.armed, k)
}

// remove removes and returns the first strike that fits, nil if none does.
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

// take removes and returns the strike for a call of a worker, or nil.
func (s *strikes) take(c call, slot int) *strike {
	return s.remove(func(k *strike) bool { return k.call == c && (k.slot == slot || k.slot == anySlot) })
}

// hitWithin arms the strike and waits until it has happened. It returns false if its call
// did not come in time.
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

// at performs the strike if the call is in its phase. A nil strike does nothing.
func (s *strike) at(p phase) {
	if s != nil && s.phase == p {
		s.do()
		close(s.hit)
	}
}
