package api

import (
	"context"
	"crypto/sha256"
	"net/netip"
	"sync"
	"time"

	"github.com/claimq/claimq/api/keyring"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
)

// One key gets at most half of what a node has for all, of each thing that lasts: then
// others always get something. Where there are no keys nobody is told from anybody.

// lasting is a thing that lasts and that a key takes up.
type lasting uint8

const (
	lastingConnection lasting = iota
	lastingWait               // a claim or a GET with wait_ms, here or at the leader
	lastingStream
	lastingCount
)

// lastingBounds are how answers name what a key has too many of.
var lastingBounds = [lastingCount]fsm.Bound{
	lastingConnection: fsm.BoundKeyConnections, lastingWait: fsm.BoundKeyWaits, lastingStream: fsm.BoundKeyStreams,
}

// nobody stands for the requests of a server without keys. They end when it has some.
var nobody = &keyring.Caller{}

// keyEnded ends what waits for a key that is of no use any more.
type keyEnded struct {
	why keyring.Failure
	bad *refuse.Refusal
}

func (e *keyEnded) Error() string { return e.bad.Text }

// keyLookInterval is how often what lasts of a key that expires is looked at, at least:
// the clock may be set.
const keyLookInterval = time.Minute

// keyShares counts what lasts of each key, and ends it when the key is taken out. Its
// zero value with most set is ready. It is safe for concurrent use.
type keyShares struct {
	most [lastingCount]int // of one key

	mu     sync.Mutex // guards what follows, and the keys of connections
	shares map[[sha256.Size]byte]*keyShare
}

// keyShare is what one key has.
type keyShare struct {
	count [lastingCount]int
	held  map[*heldRequest]struct{} // its waits and streams
}

// heldRequest is a request that lasts.
type heldRequest struct {
	who  *keyring.Caller
	from netip.Addr
	end  context.CancelCauseFunc
	look *time.Timer // until it is looked at again; nil: its key does not expire
	over bool
}

func (s *keyShares) enterLocked(what lasting, who *keyring.Caller) (share *keyShare, ok bool) {
	share = s.shares[who.Sum]
	if share == nil {
		share = &keyShare{held: make(map[*heldRequest]struct{})}
		if s.shares == nil {
			s.shares = make(map[[sha256.Size]byte]*keyShare)
		}
		s.shares[who.Sum] = share
	}
	if who != nobody && share.count[what] >= s.most[what] {
		return nil, false
	}
	share.count[what]++
	return share, true
}

func (s *keyShares) leaveLocked(what lasting, who *keyring.Caller) {
	share := s.shares[who.Sum]
	share.count[what]--
	if share.count == [lastingCount]int{} {
		delete(s.shares, who.Sum)
	}
}

// enterConn counts a connection for the key that it was the first to show. ok is false
// if the key has too many.
func (s *keyShares) enterConn(c *countedConn, who *keyring.Caller) (ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.over {
		return true // nobody will read the answer
	}
	if _, ok = s.enterLocked(lastingConnection, who); ok {
		c.who = who
	}
	return ok
}

// leaveConn counts a connection out that is closed. It is safe twice.
func (s *keyShares) leaveConn(c *countedConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.over = true
	if c.who != nil {
		s.leaveLocked(lastingConnection, c.who)
		c.who = nil
	}
}

// hold counts a request that lasts in, from the address from, and has it ended with a
// *keyEnded once its key is not what it was. The caller calls leave when it is over.
// Without a key, nil, there is no bound.
func (s *Server) hold(what lasting, who *keyring.Caller, from netip.Addr, end context.CancelCauseFunc) (leave func(), bad *refuse.Refusal) {
	if who == nil {
		who = nobody
	}
	shares := &s.shares
	shares.mu.Lock()
	defer shares.mu.Unlock()
	share, ok := shares.enterLocked(what, who)
	if !ok {
		return nil, refuseShare(what)
	}
	h := &heldRequest{who: who, from: from, end: end}
	share.held[h] = struct{}{}
	s.lookLocked(h) // the keys may have been reloaded since the request was let in
	return func() {
		shares.mu.Lock()
		defer shares.mu.Unlock()
		h.rest()
		h.over = true
		delete(share.held, h)
		shares.leaveLocked(what, who)
	}, nil
}

// lookLocked ends a request whose key is not what it was, and sees that it is looked at
// again when the key expires. shares.mu is held.
func (s *Server) lookLocked(h *heldRequest) {
	h.rest()
	now := time.Now()
	ended, expires := s.ends(h, now)
	switch {
	case ended != nil:
		h.end(ended)
	case !expires.IsZero():
		h.look = time.AfterFunc(min(expires.Sub(now), keyLookInterval), func() {
			s.shares.mu.Lock()
			defer s.shares.mu.Unlock()
			if !h.over {
				s.lookLocked(h)
			}
		})
	}
}

// rest stops the timer.
func (h *heldRequest) rest() {
	if h.look != nil {
		h.look.Stop()
		h.look = nil
	}
}

// lookAtHeld ends what lasts of keys that are not what they were.
func (s *Server) lookAtHeld() {
	s.shares.mu.Lock()
	defer s.shares.mu.Unlock()
	for _, share := range s.shares.shares {
		for h := range share.held {
			s.lookLocked(h)
		}
	}
}

// ends returns why a request does not go on with its key, nil if it does: then expires is
// until when, the zero value: for ever.
func (s *Server) ends(h *heldRequest, now time.Time) (ended *keyEnded, expires time.Time) {
	t := s.keys.Load()
	if t == nil && h.who == nobody {
		return nil, time.Time{}
	}
	expires, why, bad := t.Again(h.who, h.from, now)
	if bad != nil {
		return &keyEnded{why, bad}, time.Time{}
	}
	return nil, expires
}

func refuseShare(what lasting) *refuse.Refusal {
	f := refuse.Because(wire.CodeOverloaded)
	f.Text = "The API key has as many " + [lastingCount]string{"connections", "waiting requests", "streams"}[what] + " as one key may have"
	f.Reason = fsm.Reason(lastingBounds[what])
	return f
}

// refuseEnded is the refusal of a request whose key was of no use any more while it waited.
func (s *Server) refuseEnded(ended *keyEnded) *refuse.Refusal {
	return s.metrics.AuthFailures.Refuse(ended.why, ended.bad)
}
