package lasting

import (
	"crypto/sha256"
	"sync"
	"sync/atomic"

	"github.com/claimq/claimq/api/keyring"
)

// One key gets at most half of what a node has for all, of each thing that lasts: then
// others always get something. Where there are no keys nobody is told from anybody.

// nobody stands for the requests of a server without keys. They end when it has some.
var nobody = &keyring.Caller{}

// Shares counts what lasts of each key. Its zero value with Most and Keys set, which are
// not changed then, is ready. It is safe for concurrent use.
type Shares struct {
	Most Most
	Keys *atomic.Pointer[keyring.Ring] // of now, nil: there are none

	mu     sync.Mutex // guards what follows, and every Conn
	shares map[[sha256.Size]byte]*share
}

// share is what one key has.
type share struct {
	count [kinds]int
	held  map[*held]struct{} // its waits and streams
}

// Conn is what a connection counts for. Its zero value is one that has shown no key.
type Conn struct {
	who  *keyring.Caller
	over bool // it is closed
}

func (s *Shares) enterLocked(what Kind, who *keyring.Caller) (of *share, ok bool) {
	of = s.shares[who.Sum]
	if of == nil {
		of = &share{held: make(map[*held]struct{})}
		if s.shares == nil {
			s.shares = make(map[[sha256.Size]byte]*share)
		}
		s.shares[who.Sum] = of
	}
	if who != nobody && of.count[what] >= s.Most[what] {
		return nil, false
	}
	of.count[what]++
	return of, true
}

func (s *Shares) leaveLocked(what Kind, who *keyring.Caller) {
	of := s.shares[who.Sum]
	of.count[what]--
	if of.count == [kinds]int{} {
		delete(s.shares, who.Sum)
	}
}

// Callers returns how many have anything that lasts.
func (s *Shares) Callers() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.shares)
}

// Enter counts a connection for the key that it was the first to show. ok is false
// if the key has too many.
func (s *Shares) Enter(c *Conn, who *keyring.Caller) (ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.over {
		return true // nobody will read the answer
	}
	if _, ok = s.enterLocked(Connection, who); ok {
		c.who = who
	}
	return ok
}

// Leave counts a connection out that is closed. It is safe twice.
func (s *Shares) Leave(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.over = true
	if c.who != nil {
		s.leaveLocked(Connection, c.who)
		c.who = nil
	}
}
