package index

import (
	"cmp"
	"slices"
	"strings"

	"github.com/claimq/claimq/fsm/record"
)

// shares are the shares of one type, by share key.
type shares struct {
	byName  map[string]*share
	recent  *share           // cache: the last share changed, or nil
	changed []*share         // shares that settle has to look at
	held    IDs              // the oldest claimable task of each closed share
	bytes   int64            // memory of all shares
	saved   int              // shares that have something saved
	spare   *share           // an empty share for the next new key
	waiting [ShareStates]int // shares with claimable tasks, by state
}

// share holds the claimable tasks with one share key. It is closed while its pause or one of its
// limits keeps them from being claimed.
type share struct {
	stock
	state   ShareState // where it counts in shares.waiting; ShareStates: nowhere
	changed bool       // whether it is in shares.changed
	claimed int64      // number of claimed tasks
	ready   int        // its part of its type's ready: count, or 0 while closed
	room    int        // how many of these can be claimed one after another
	held    uint64     // its task in shares.held, or 0
	bytes   int64      // its part of shares.bytes

	own *ownShare // nil for most
}

// shareOf returns the share, and creates it if needed. The type must be settled afterwards.
func (ts *Type) shareOf(key string) *share {
	if ts.shares == nil {
		ts.shares = &shares{byName: map[string]*share{}, held: NewIDs()}
	}
	of := ts.shares
	sh := of.recent
	if sh == nil || sh.key != key {
		sh = of.byName[key]
	}
	if sh == nil {
		if sh = of.spare; sh == nil {
			sh = &share{state: ShareStates}
			sh.share = sh
		}
		of.spare = nil
		sh.key, sh.weight = key, ts.weights[key]
		of.byName[key] = sh
		ts.ranking.add(&sh.stock)
		if ts.turns != nil {
			ts.turns.add(&sh.stock)
		}
	}
	of.recent = sh
	if !sh.changed {
		sh.changed = true
		of.changed = append(of.changed, sh)
	}
	return sh
}

// hold adds claims, negative if they have ended, to the counts of the type and of the task's
// share.
func (ts *Type) hold(t *record.Task, claims int64) {
	ts.claimed += claims
	if key := t.Opts().ShareKey; key != "" {
		ts.shareOf(key).claimed += claims
	}
}

// settle opens or closes the shares of the type that have changed, lets tags begin and end, and
// forgets empty shares. The type must be placed afterwards.
func (s *Types) settle(ts *Type, saved Turns, now int64) {
	if len(ts.touched) > 0 {
		s.settleStock(ts, &ts.stock, saved)
	}
	if ts.shares != nil {
		s.settleChanged(ts, saved, now)
	}
	if ts.turns != nil && len(ts.turns.idle) > 0 && !s.undoing && !s.undone {
		ts.endClocks(saved)
	}
}

// settleChanged does the part of settle for shares that have changed.
func (s *Types) settleChanged(ts *Type, saved Turns, now int64) {
	for _, sh := range ts.shares.changed {
		sh.changed = false
		if opened := s.settleShare(ts, sh, now); opened && ts.turns != nil && !s.undoing && !s.undone {
			ts.catchUp(&sh.stock, saved)
		}
		s.settleStock(ts, &sh.stock, saved)
		if sh.count == 0 && sh.claimed == 0 && sh.saved() == nil && !(s.undoing && ts.turns != nil) {
			ts.forgetShare(sh)
		}
	}
	clear(ts.shares.changed)
	ts.shares.changed = ts.shares.changed[:0]
}

// settleStock lets the tags of one share begin and end, if the type is fair.
func (s *Types) settleStock(ts *Type, of *stock, saved Turns) {
	switch {
	case ts.turns == nil:
	case s.undoing:
		s.settleLater(ts, of)
	default:
		ts.settleTurns(of, saved, s.undone)
	}
}

// settleShare opens or closes the share, at time now by T, and reports whether it has opened.
func (s *Types) settleShare(ts *Type, sh *share, now int64) (opened bool) {
	of, was := ts.shares, sh.closed
	of.countAs(sh, s.updateGate(ts, sh, now))
	ready, held := sh.count, uint64(0)
	if sh.closed {
		ready = 0
		held, _ = sh.firstOf(oldest).task(oldest)
	}
	room := 0
	if !sh.closed {
		room = int(ts.roomIn(sh, now))
	}
	ts.added += max(room-sh.room, 0)
	ts.ready += ready - sh.ready
	sh.ready, sh.room = ready, room
	if held != sh.held {
		if sh.held != 0 {
			of.held.Delete(sh.held)
		}
		if held != 0 {
			of.held.Insert(held)
		}
		sh.held = held
	}
	ts.ranking.change(sh.slot)
	bytes := record.BytesOfShare(sh.key, len(sh.queues), sh.levels)
	of.bytes += bytes - sh.bytes
	sh.bytes = bytes
	return was && !sh.closed
}

// countAs updates waiting for the share, which has the state now.
func (of *shares) countAs(sh *share, state ShareState) {
	if sh.count == 0 {
		state = ShareStates
	}
	if state == sh.state {
		return
	}
	if sh.state < ShareStates {
		of.waiting[sh.state]--
	}
	if state < ShareStates {
		of.waiting[state]++
	}
	sh.state = state
}

// settleShares settles all shares after their limits have changed, at time now by T.
func (s *Types) settleShares(ts *Type, saved Turns, now int64) {
	if ts.shares == nil {
		return
	}
	var opened []*share
	for _, sh := range ts.shares.byName { // sorted below
		if s.settleShare(ts, sh, now) {
			opened = append(opened, sh)
		}
		if ts.turns != nil {
			ts.placeTurn(&sh.stock)
		}
	}
	if ts.turns == nil {
		return
	}
	slices.SortFunc(opened, func(a, b *share) int { return strings.Compare(a.key, b.key) })
	for _, sh := range opened {
		ts.catchUp(&sh.stock, saved)
		ts.placeTurn(&sh.stock)
	}
}

// forgetShare removes a share without pending or claimed tasks.
func (ts *Type) forgetShare(sh *share) {
	of := ts.shares
	ts.ranking.remove(&sh.stock)
	if ts.turns != nil {
		ts.turns.remove(&sh.stock)
	}
	delete(of.byName, sh.key)
	of.bytes -= sh.bytes
	sh.bytes = 0
	of.recent, of.spare = nil, sh
}

// stockOf returns the stock of the share, or that of the tasks without share key. It is nil if
// there is no such share.
func (ts *Type) stockOf(key string) *stock {
	switch {
	case key == "":
		return &ts.stock
	case ts.shares == nil || ts.shares.byName[key] == nil:
		return nil
	}
	return &ts.shares.byName[key].stock
}

// Shares returns the number of shares with pending or claimed tasks, or with something saved.
func (ts *Type) Shares() int {
	if ts.shares == nil {
		return 0
	}
	return len(ts.shares.byName)
}

// WaitingShares returns the number of shares with claimable tasks, by state. A rate limit counts
// until OpenDue.
func (ts *Type) WaitingShares() (byState [ShareStates]int) {
	if ts.shares != nil {
		byState = ts.shares.waiting
	}
	return byState
}

// queuesAbove returns the queues, also of open shares, whose tasks have more than left attempts
// left: by share key, then by attempts left. With shares it takes time for each of them.
func (ts *Type) queuesAbove(left int32) []*queue {
	if ts.shares == nil {
		return ts.above(left)
	}
	queues := slices.Clone(ts.above(left))
	for _, sh := range ts.shares.byName { // sorted below
		if !sh.closed {
			queues = append(queues, sh.above(left)...)
		}
	}
	slices.SortFunc(queues, func(a, b *queue) int {
		return cmp.Or(strings.Compare(a.of.key, b.of.key), cmp.Compare(a.left, b.left))
	})
	return queues
}

// hasAbove reports whether queuesAbove returns a queue.
func (ts *Type) hasAbove(left int32) bool {
	switch {
	case left == 0:
		return ts.ready > 0
	case len(ts.above(left)) > 0:
		return true
	case ts.shares == nil:
		return false
	}
	for _, sh := range ts.shares.byName { // the order makes no difference
		if !sh.closed && len(sh.above(left)) > 0 {
			return true
		}
	}
	return false
}
