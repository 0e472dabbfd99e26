package door

import (
	"crypto/sha256"
	"sync"
)

// recent is a cache of recently used values by hash. It keeps no more values than its
// bound, and at least the most recent half. It is safe for concurrent use.
type recent[V any] struct {
	half int

	mu         sync.Mutex // guards what follows
	young, old map[[sha256.Size]byte]V
}

func newRecent[V any](most int) *recent[V] {
	return &recent[V]{half: most / 2, young: make(map[[sha256.Size]byte]V)}
}

// get returns the value for the hash.
func (r *recent[V]) get(sum *[sha256.Size]byte) (v V, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if v, ok = r.young[*sum]; ok {
		return v, true
	}
	if v, ok = r.old[*sum]; ok {
		r.putLocked(sum, v)
	}
	return v, ok
}

// keep returns the value for the hash, made with made if there is no value yet.
func (r *recent[V]) keep(sum *[sha256.Size]byte, made func() V) V {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, ok := r.young[*sum]
	if ok {
		return v
	}
	if v, ok = r.old[*sum]; !ok {
		v = made()
	}
	r.putLocked(sum, v)
	return v
}

// put stores v, replacing an existing value.
func (r *recent[V]) put(sum *[sha256.Size]byte, v V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.putLocked(sum, v)
}

func (r *recent[V]) putLocked(sum *[sha256.Size]byte, v V) {
	if _, ok := r.young[*sum]; !ok && len(r.young) >= r.half {
		r.old, r.young = r.young, make(map[[sha256.Size]byte]V, r.half)
	}
	r.young[*sum] = v
}

// count returns the number of values; some may be counted twice.
func (r *recent[V]) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.young) + len(r.old)
}
