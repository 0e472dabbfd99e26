package api

import (
	"hash/maphash"
	"maps"
	"sync"
	"time"
)

// The bounds of a table of names: so many are remembered, each shard its part.
const (
	seenNamesMax  = 16_384
	seenShards    = 64
	seenShardsMax = seenNamesMax / seenShards
)

// lastSeen remembers when each of many names was last seen, by this server's
// clock. It is on the way of every claim: a name that is known costs a hash and
// a map's write under a lock that few share, and no memory. Past its bound the
// name that was not seen for longest is forgotten, of those in its shard.
type lastSeen struct {
	seed   maphash.Seed
	shards [seenShards]seenShard
}

type seenShard struct {
	mu sync.Mutex
	at map[string]int64 // guarded by mu
	_  [48]byte         // shards do not share a cache line
}

func newLastSeen() *lastSeen {
	l := &lastSeen{seed: maphash.MakeSeed()}
	for i := range l.shards {
		l.shards[i].at = make(map[string]int64)
	}
	return l
}

func (l *lastSeen) shard(name string) *seenShard {
	return &l.shards[maphash.String(l.seed, name)%seenShards]
}

// note says that name was seen at that time. It keeps name, if it is new.
func (l *lastSeen) note(name string, at int64) {
	s := l.shard(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	last, known := s.at[name]
	if known && last >= at {
		return
	}
	if !known && len(s.at) >= seenShardsMax {
		s.forgetOldest()
	}
	s.at[name] = at
}

func (s *seenShard) forgetOldest() {
	oldest, since := "", int64(0)
	for name, at := range s.at {
		if since == 0 || at < since {
			oldest, since = name, at
		}
	}
	delete(s.at, oldest)
}

// last returns when name was last seen, 0 if it was not or is forgotten.
func (l *lastSeen) last(name string) int64 {
	s := l.shard(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at[name]
}

// all returns all names that are remembered, and when each was last seen.
func (l *lastSeen) all() map[string]int64 {
	seen := make(map[string]int64)
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		maps.Copy(seen, s.at)
		s.mu.Unlock()
	}
	return seen
}

// clock is this server's own clock: milliseconds since it was made, above 0. It
// runs on when the wall clock jumps.
func (s *Server) clock(t time.Time) int64 { return t.Sub(s.begun).Milliseconds() + 1 }
