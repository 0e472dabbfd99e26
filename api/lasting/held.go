package lasting

import (
	"context"
	"net/netip"
	"time"

	"github.com/claimq/claimq/api/keyring"
	"github.com/claimq/claimq/api/refuse"
)

// LookInterval is the interval at which waits and streams of keys that expire are checked at least, because the clock
// may be set.
const LookInterval = time.Minute

// held is a wait or a stream.
type held struct {
	who  *keyring.Caller
	from netip.Addr
	end  context.CancelCauseFunc
	look *time.Timer // until the next check; nil: its key does not expire
	over bool
}

// Hold counts a wait or a stream from the given address, and ends it with an *Ended once its key becomes invalid. The
// caller calls leave when it is over. Without a key (nil) there is no bound.
func (s *Shares) Hold(what Kind, who *keyring.Caller, from netip.Addr, end context.CancelCauseFunc) (leave func(), bad *refuse.Refusal) {
	if who == nil {
		who = nobody
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	share, ok := s.enterLocked(what, who)
	if !ok {
		return nil, Refuse(what)
	}
	h := &held{who: who, from: from, end: end}
	share.held[h] = struct{}{}
	s.lookLocked(h) // the keys may have been reloaded since the request was admitted
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		h.rest()
		h.over = true
		delete(share.held, h)
		s.leaveLocked(what, who)
	}, nil
}

// lookLocked ends a request whose key has become invalid, and schedules the next check for when the key expires.
func (s *Shares) lookLocked(h *held) {
	h.rest()
	now := time.Now()
	ended, expires := s.ends(h, now)
	switch {
	case ended != nil:
		h.end(ended)
	case !expires.IsZero():
		h.look = time.AfterFunc(min(expires.Sub(now), LookInterval), func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if !h.over {
				s.lookLocked(h)
			}
		})
	}
}

// rest stops the timer.
func (h *held) rest() {
	if h.look != nil {
		h.look.Stop()
		h.look = nil
	}
}

// Look ends the waits and streams of keys that have become invalid. Call it when the keys have changed.
func (s *Shares) Look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, share := range s.shares {
		for h := range share.held {
			s.lookLocked(h)
		}
	}
}

// ends returns why a request's key is invalid, or nil; then expires is its expiry (zero: never).
func (s *Shares) ends(h *held, now time.Time) (ended *Ended, expires time.Time) {
	t := s.Keys.Load()
	if t == nil && h.who == nobody {
		return nil, time.Time{}
	}
	expires, why, bad := t.Again(h.who, h.from, now)
	if bad != nil {
		return &Ended{why, bad}, time.Time{}
	}
	return nil, expires
}
