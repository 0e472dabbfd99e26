package hosts

import (
	"errors"
	"fmt"
	"maps"
	"sync"
)

// errClosed is returned when something is asked of a network that is gone.
var errClosed = errors.New("the network is closed")

// rules is what is asked of a network at the moment.
type rules struct {
	// apply makes the links what the given qualities say, all others clean. It is
	// called with mu held.
	apply func(links map[Link]Quality) error

	mu    sync.Mutex // guards what follows
	asked map[int]map[Link]Quality
	next  int
}

func newRules(apply func(map[Link]Quality) error) *rules {
	return &rules{apply: apply, asked: map[int]map[Link]Quality{}}
}

// add applies the qualities together with those asked for already.
func (r *rules) add(links map[Link]Quality) (remove func() error, err error) {
	for link, q := range links {
		if err := q.validate(); err != nil {
			return nil, fmt.Errorf("link %d to %d: %w", link.From, link.To, err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	id := r.next
	r.next++
	r.asked[id] = maps.Clone(links)
	if err := r.apply(r.combinedLocked()); err != nil {
		delete(r.asked, id)
		return nil, errors.Join(err, r.apply(r.combinedLocked()))
	}
	return func() error { return r.remove(id) }, nil
}

func (r *rules) remove(id int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.asked[id]; !ok {
		return nil
	}
	delete(r.asked, id)
	return r.apply(r.combinedLocked())
}

// combinedLocked adds up what is asked, link by link.
func (r *rules) combinedLocked() map[Link]Quality {
	sum := map[Link]Quality{}
	for _, links := range r.asked {
		for link, q := range links {
			sum[link] = sum[link].with(q)
		}
	}
	return sum
}

// with returns the quality of a link that has both.
func (q Quality) with(other Quality) Quality {
	return Quality{
		Cut:       q.Cut || other.Cut,
		Loss:      1 - (1-q.Loss)*(1-other.Loss),
		Delay:     q.Delay + other.Delay,
		Jitter:    q.Jitter + other.Jitter,
		Duplicate: max(q.Duplicate, other.Duplicate),
		Reorder:   max(q.Reorder, other.Reorder),
	}
}

func (q Quality) validate() error {
	for _, share := range []float64{q.Loss, q.Duplicate, q.Reorder} {
		if !(share >= 0 && share <= 1) {
			return fmt.Errorf("a share of %v: 0 to 1 are possible", share)
		}
	}
	if q.Delay < 0 || q.Jitter < 0 {
		return fmt.Errorf("a delay of %v with a jitter of %v: neither may be negative", q.Delay, q.Jitter)
	}
	return nil
}

// late reports whether packets of the link have to be kept for a while.
func (q Quality) late() bool {
	return q.Delay > 0 || q.Jitter > 0 || q.Duplicate > 0 || q.Reorder > 0
}
