package lasting

import (
	"crypto/sha256"
	"sync"
	"sync/atomic"

	"github.com/claimq/claimq/api/keyring"
)

// One key gets at most half of what a node has in total of each kind, so that others always get something. Without
// keys all clients count as one, without a bound.

// nobody represents the clients of a server without keys. Their requests end when the server gets keys.
var nobody = &keyring.Caller{}

// Shares counts what each key holds. The zero value is ready once Most and Keys are set, which must not change
// afterwards. It is safe for concurrent use.
type Shares struct {
	Most Most
	Keys *atomic.Pointer[keyring.Ring] // the current ones, nil: there are none

	mu     sync.Mutex // guards what follows, and every Conn
	shares map[[sha256.Size]byte]*share
}

// share holds the counts for one key.
type share struct {
	count [kinds]int
	held  map[*held]struct{} // its waits and streams
}

// Conn is the key that a connection counts for. The zero value has shown none.
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

// Callers returns the number of keys that hold anything.
func (s *Shares) Callers() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.shares)
}

// Enter counts a connection for the first key that it has shown. ok is false if the key has too many.
func (s *Shares) Enter(c *Conn, who *keyring.Caller) (ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.over {
		return true // the answer can no longer be read
	}
	if _, ok = s.enterLocked(Connection, who); ok {
		c.who = who
	}
	return ok
}

// Leave uncounts a closed connection. It may be called twice.
func (s *Shares) Leave(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.over = true
	if c.who != nil {
		s.leaveLocked(Connection, c.who)
		c.who = nil
	}
}
