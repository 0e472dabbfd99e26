package presence

import (
	"container/list"
	"hash/maphash"
	"sync"
)

// Bounds of a table of names; each shard holds its part.
const (
	namesMax = 16_384
	shards   = 64
	shardMax = namesMax / shards
)

// times remembers when each of many names was last seen, by its owner's clock. Beyond its bound the name is forgotten
// that was not seen for longest, among those in the same shard.
type times struct {
	seed   maphash.Seed
	shards [shards]shard
}

type shard struct {
	mu sync.Mutex
	at map[string]*list.Element // guarded by mu
	// order has a *seen for each name, the least recent first. Guarded by mu.
	order list.List
}

// seen is a name and when it was last seen.
type seen struct {
	name string
	at   int64
}

func newTimes() *times {
	l := &times{seed: maphash.MakeSeed()}
	for i := range l.shards {
		l.shards[i].at = make(map[string]*list.Element)
	}
	return l
}

func (l *times) shard(name string) *shard {
	return &l.shards[maphash.String(l.seed, name)%shards]
}

// note records that name was seen at at. It keeps name if it is new. Its cost does not depend on the number of names,
// because one claim may list 1,000 new ones.
func (l *times) note(name string, at int64) {
	s := l.shard(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.at[name]
	switch {
	case e != nil:
		last := e.Value.(*seen)
		last.at = max(last.at, at)
	case s.order.Len() < shardMax:
		e = s.order.PushBack(&seen{name, at})
		s.at[name] = e
	default: // the oldest makes room
		e = s.order.Front()
		oldest := e.Value.(*seen)
		delete(s.at, oldest.name)
		*oldest = seen{name, at}
		s.at[name] = e
	}
	s.order.MoveToBack(e)
}

// last returns when name was last seen, 0 if unknown.
func (l *times) last(name string) int64 {
	s := l.shard(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.at[name]; e != nil {
		return e.Value.(*seen).at
	}
	return 0
}

// all returns all names and when each was last seen.
func (l *times) all() map[string]int64 {
	all := make(map[string]int64)
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		for name, e := range s.at {
			all[name] = e.Value.(*seen).at
		}
		s.mu.Unlock()
	}
	return all
}
