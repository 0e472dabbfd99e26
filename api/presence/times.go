package presence

import (
	"hash/maphash"
	"maps"
	"sync"
)

// The bounds of a table of names: so many are remembered, each shard its part.
const (
	namesMax = 16_384
	shards   = 64
	shardMax = namesMax / shards
)

// times remembers when each of many names was last seen, by its owner's clock. Past
// its bound the name that was not seen for longest is forgotten, of those in its shard.
type times struct {
	seed   maphash.Seed
	shards [shards]shard
}

type shard struct {
	mu sync.Mutex
	at map[string]int64 // guarded by mu
	_  [48]byte         // shards do not share a cache line
}

func newTimes() *times {
	l := &times{seed: maphash.MakeSeed()}
	for i := range l.shards {
		l.shards[i].at = make(map[string]int64)
	}
	return l
}

func (l *times) shard(name string) *shard {
	return &l.shards[maphash.String(l.seed, name)%shards]
}

// note says that name was seen at that time. It keeps name, if it is new.
func (l *times) note(name string, at int64) {
	s := l.shard(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	last, known := s.at[name]
	if known && last >= at {
		return
	}
	if !known && len(s.at) >= shardMax {
		s.forgetOldest()
	}
	s.at[name] = at
}

func (s *shard) forgetOldest() {
	oldest, since := "", int64(0)
	for name, at := range s.at {
		if since == 0 || at < since {
			oldest, since = name, at
		}
	}
	delete(s.at, oldest)
}

// last returns when name was last seen, 0 if it was not or is forgotten.
func (l *times) last(name string) int64 {
	s := l.shard(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at[name]
}

// all returns all names that are remembered, and when each was last seen.
func (l *times) all() map[string]int64 {
	seen := make(map[string]int64)
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		maps.Copy(seen, s.at)
		s.mu.Unlock()
	}
	return seen
}
