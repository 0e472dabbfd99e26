package door

import (
	"context"
	"crypto/sha256"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/nodes"
)

// One key gets at most half of what a node has in total of each kind, so that others always get something. Without
// keys all clients count as one, without a bound.

// keyless represents the clients of a server without keys. Their requests end when the server gets keys.
var keyless = &Caller{}

// Shares counts the connections, waits and streams of each key, gives one key at most half of what a node has, and ends
// waits and streams once their key has become invalid. The zero value is ready once Limits and Keys are set, which must
// not change afterwards. It is safe for concurrent use.
type Shares struct {
	Limits ShareLimits
	Keys   *atomic.Pointer[Keyring] // the current ones; nil in open mode

	mu     sync.Mutex // guards what follows, and every ShareConn
	shares map[[sha256.Size]byte]*share
}

// share holds the counts for one key.
type share struct {
	count [shareKinds]int
	held  map[*held]struct{} // its waits and streams
}

// ShareConn is the key that a connection counts for. The zero value has shown none.
type ShareConn struct {
	who  *Caller
	over bool // it is closed
}

func (s *Shares) enterLocked(what ShareKind, who *Caller) (of *share, ok bool) {
	of = s.shares[who.Sum]
	if of == nil {
		of = &share{held: make(map[*held]struct{})}
		if s.shares == nil {
			s.shares = make(map[[sha256.Size]byte]*share)
		}
		s.shares[who.Sum] = of
	}
	if who != keyless && of.count[what] >= s.Limits[what] {
		return nil, false
	}
	of.count[what]++
	return of, true
}

func (s *Shares) leaveLocked(what ShareKind, who *Caller) {
	of := s.shares[who.Sum]
	of.count[what]--
	if of.count == [shareKinds]int{} {
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
func (s *Shares) Enter(c *ShareConn, who *Caller) (ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.over {
		return true // the answer can no longer be read
	}
	if _, ok = s.enterLocked(ShareConnection, who); ok {
		c.who = who
	}
	return ok
}

// Leave uncounts a closed connection. It may be called twice.
func (s *Shares) Leave(c *ShareConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.over = true
	if c.who != nil {
		s.leaveLocked(ShareConnection, c.who)
		c.who = nil
	}
}

// ShareKind is a kind of long-lived thing that is counted per key.
type ShareKind uint8

// The kinds.
const (
	ShareConnection ShareKind = iota
	ShareWait                 // a claim or a GET with wait_ms, here or at the leader
	ShareStream
	shareKinds
)

// ShareLimits holds the limit per key of each kind.
type ShareLimits [shareKinds]int

// shareNames has the names of the kinds in answers.
var shareNames = [shareKinds]struct {
	words string
	bound nodes.Bound
}{
	ShareConnection: {"connections", nodes.BoundKeyConnections},
	ShareWait:       {"waiting requests", nodes.BoundKeyWaits},
	ShareStream:     {"streams", nodes.BoundKeyStreams},
}

// RefuseShare returns the refusal of one more than a key may have.
func RefuseShare(what ShareKind) *refuse.Refusal {
	return refuse.Overloaded(shareNames[what].bound, "The API key has as many "+shareNames[what].words+" as one key may have")
}

// KeyEnded is the cause that ends a wait or a stream when its key has become invalid.
type KeyEnded struct {
	Why     Failure
	Refusal *refuse.Refusal
}

func (e *KeyEnded) Error() string { return e.Refusal.Text }

// KeyRecheckInterval is the longest time between two checks of a wait or a stream whose key expires, because the clock
// may be set.
const KeyRecheckInterval = time.Minute

// held is a wait or a stream.
type held struct {
	who     *Caller
	from    netip.Addr
	end     context.CancelCauseFunc
	recheck *time.Timer // the next check; nil: its key does not expire
	over    bool
}

// Hold counts a wait or a stream from the given address, and ends it with a *KeyEnded once its key becomes invalid. The
// caller calls leave when it is over. Without a key (nil) there is no bound.
func (s *Shares) Hold(what ShareKind, who *Caller, from netip.Addr, end context.CancelCauseFunc) (leave func(), bad *refuse.Refusal) {
	if who == nil {
		who = keyless
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	share, ok := s.enterLocked(what, who)
	if !ok {
		return nil, RefuseShare(what)
	}
	h := &held{who: who, from: from, end: end}
	share.held[h] = struct{}{}
	s.recheckLocked(h) // the keys may have been reloaded since the request was admitted
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		h.stopTimer()
		h.over = true
		delete(share.held, h)
		s.leaveLocked(what, who)
	}, nil
}

// recheckLocked ends a request whose key has become invalid, and schedules the next check for when the key expires.
func (s *Shares) recheckLocked(h *held) {
	h.stopTimer()
	now := time.Now()
	ended, expires := s.ends(h, now)
	switch {
	case ended != nil:
		h.end(ended)
	case !expires.IsZero():
		h.recheck = time.AfterFunc(min(expires.Sub(now), KeyRecheckInterval), func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if !h.over {
				s.recheckLocked(h)
			}
		})
	}
}

func (h *held) stopTimer() {
	if h.recheck != nil {
		h.recheck.Stop()
		h.recheck = nil
	}
}

// EndInvalid ends the waits and streams of keys that have become invalid. Call it when the keys have changed.
func (s *Shares) EndInvalid() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, share := range s.shares {
		for h := range share.held {
			s.recheckLocked(h)
		}
	}
}

// ends returns why a request's key is invalid, or nil; then expires is its expiry (zero: never).
func (s *Shares) ends(h *held, now time.Time) (ended *KeyEnded, expires time.Time) {
	t := s.Keys.Load()
	if t == nil && h.who == keyless {
		return nil, time.Time{}
	}
	expires, why, bad := t.Again(h.who, h.from, now)
	if bad != nil {
		return &KeyEnded{why, bad}, time.Time{}
	}
	return nil, expires
}
