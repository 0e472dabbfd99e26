package index

import (
	"iter"

	"github.com/claimq/claimq/fsm/record"
)

// ShareState says whether tasks of a share can be claimed, if its type can be claimed from.
type ShareState uint8

// The states. A share for which several are true has the first.
const (
	ShareOpen        ShareState = iota
	SharePaused                 // by its own settings
	ShareLimited                // it has all the claims that its limit allows
	ShareRateLimited            // the bucket of its rate limit holds no claim
	ShareStates
)

// String returns the API's name of the state.
func (s ShareState) String() string {
	return [ShareStates]string{"open", "paused", "limited", "rate_limited"}[s]
}

// ShareGate has each reason why tasks of a share cannot be claimed. The zero value means that they
// can.
type ShareGate struct {
	Paused  bool
	Limited bool
	OpensAt int64 // when its bucket holds a claim, or 0 if it does
}

// State returns the state of a share with these reasons.
func (g ShareGate) State() ShareState {
	switch {
	case g.Paused:
		return SharePaused
	case g.Limited:
		return ShareLimited
	case g.OpensAt != 0:
		return ShareRateLimited
	}
	return ShareOpen
}

// ShareGate returns what holds back the share with the key at time t, by T.
func (ts *Type) ShareGate(key string, t int64) ShareGate {
	if sh := ts.shareNamed(key); sh != nil {
		return ts.gateOf(sh, t)
	}
	return ShareGate{}
}

func (ts *Type) gateOf(sh *share, t int64) ShareGate {
	g := ShareGate{Paused: sh.saved() != nil && sh.saved().Settings.Paused, Limited: ts.slotsOf(sh) <= 0}
	if at := record.ShareClaimableAt(sh.saved(), ts.rateOf(sh), t); at > t {
		g.OpensAt = at
	}
	return g
}

// maxOf returns how many claims the share may have at the same time, 0 = no limit.
func (ts *Type) maxOf(sh *share) int32 {
	if sh.saved() != nil && sh.saved().Settings.MaxClaimed > 0 {
		return sh.saved().Settings.MaxClaimed
	}
	return ts.perKey
}

// slotsOf returns how many more claims the share may have at the same time.
func (ts *Type) slotsOf(sh *share) int64 {
	if most := ts.maxOf(sh); most > 0 {
		return int64(most) - sh.claimed
	}
	return record.NoLimit
}

// rateOf returns the rate limit of the share, 0 = none.
func (ts *Type) rateOf(sh *share) int64 {
	if sh.saved() != nil && sh.saved().Settings.RateLimit > 0 {
		return sh.saved().Settings.RateLimit
	}
	return ts.ratePerKey
}

// roomOf returns how many tasks of the share claims could take at time t.
func (ts *Type) roomOf(sh *share, t int64) int64 {
	if ts.gateOf(sh, t).State() != ShareOpen {
		return 0
	}
	return ts.roomIn(sh, t)
}

// roomIn is roomOf for a share that is open at time t.
func (ts *Type) roomIn(sh *share, t int64) int64 {
	return min(int64(sh.count), ts.slotsOf(sh), record.ShareClaimsAt(sh.saved(), ts.rateOf(sh), t))
}

// updateGate opens or closes the share, at time now by T, and returns its state. It also schedules
// when its rate limit opens it, and when its bucket is full.
func (s *Types) updateGate(ts *Type, sh *share, now int64) ShareState {
	gate := ts.gateOf(sh, now)
	state := gate.State()
	sh.closed = state != ShareOpen
	own := sh.own
	if own == nil {
		return state
	}
	opensAt, fullAt := int64(0), int64(0)
	if state == ShareRateLimited && sh.count > 0 {
		opensAt = gate.OpensAt
	}
	if rate := ts.rateOf(sh); rate > 0 && own.saved != nil && own.saved.Spent > 0 { // a restore sets its type's limit later
		fullAt = own.saved.FullAt(rate)
	}
	s.reschedule(s.openings, ts, sh, &own.opensAt, opensAt)
	s.reschedule(s.filling, ts, sh, &own.fullAt, fullAt)
	if own.saved == nil {
		sh.own = nil
	}
	return state
}

// reschedule moves the share in a list from one time to another; 0 = it is not in the list.
func (s *Types) reschedule(list List[opening], ts *Type, sh *share, from *int64, to int64) {
	if *from == to {
		return
	}
	if *from != 0 {
		list.Delete(opening{*from, ts.name, sh.key})
	}
	if to != 0 {
		list.Set(opening{to, ts.name, sh.key})
	}
	*from = to
}

// ownShare has the fields that few shares use.
type ownShare struct {
	number  uint64        // of saved, or 0
	saved   *record.Share // nil: nothing; read-only
	opensAt int64         // when its rate limit opens it, while only that closes it; else 0
	fullAt  int64         // when its bucket is full; 0 if it is
}

// saved returns what is saved of the share, or nil.
func (sh *share) saved() *record.Share {
	if sh.own == nil {
		return nil
	}
	return sh.own.saved
}

// SavedShare returns what is saved of the share and its number, or nil.
func (ts *Type) SavedShare(key string) (number uint64, saved *record.Share) {
	if sh := ts.shareNamed(key); sh != nil {
		if sh.own != nil {
			return sh.own.number, sh.own.saved
		}
	}
	return 0, nil
}

// ShareRate returns the rate limit of the share, 0 = none.
func (ts *Type) ShareRate(key string) int64 {
	if sh := ts.shareNamed(key); sh != nil {
		return ts.rateOf(sh)
	}
	return ts.ratePerKey
}

// SaveShare sets what is saved of the share, or nil. The type must be arranged afterwards.
func (ts *Type) SaveShare(key string, number uint64, saved *record.Share) {
	sh := ts.shareOf(key)
	of := ts.shares
	switch {
	case sh.saved() == nil && saved != nil:
		of.saved++
	case sh.saved() != nil && saved == nil:
		of.saved--
	}
	if sh.own == nil {
		sh.own = &ownShare{}
	}
	sh.own.number, sh.own.saved = number, saved
}

// HasSaved reports whether anything of a share of the type is saved.
func (ts *Type) HasSaved() bool { return ts.shares != nil && ts.shares.saved > 0 }

// ArrangeShares updates the type after SaveShare, at time now by T.
func (s *Types) ArrangeShares(ts *Type, saved Turns, now int64) {
	s.settle(ts, saved, now)
	s.place(ts, now)
}

// ArrangeFull updates the type after SaveShare of a share whose bucket is full, which lets nothing
// more be claimed.
func (s *Types) ArrangeFull(ts *Type, saved Turns, now int64) {
	s.settle(ts, saved, now)
	s.weigh(ts)
}

// reopen settles a share whose rate limit may have opened it. None of its tasks has changed.
func (s *Types) reopen(ts *Type, sh *share, saved Turns, now int64) {
	opened := s.settleShare(ts, sh, now)
	if ts.turns == nil {
		return
	}
	if opened {
		ts.catchUp(&sh.stock, saved)
	}
	ts.placeTurn(&sh.stock)
}

// LimitShares is ArrangeShares after a change of settings. Like SetRecord it notes all tasks that
// can be claimed.
func (s *Types) LimitShares(ts *Type, saved Turns, now int64) {
	s.settle(ts, saved, now)
	ts.added = ts.ready
	s.place(ts, now)
}

// FullBucket returns the first share whose bucket is full at time now, by T; ok is false without one.
func (s *Types) FullBucket(now int64) (ts *Type, key string, ok bool) {
	next, ok := s.filling.Min()
	if !ok || next.t > now {
		return nil, "", false
	}
	return s.byName[next.name], next.key, true
}

// shareNamed returns the share, or nil.
func (ts *Type) shareNamed(key string) *share {
	if key == "" || ts.shares == nil {
		return nil
	}
	if sh := ts.shares.recent; sh != nil && sh.key == key {
		return sh
	}
	return ts.shares.byName[key]
}

// dueShares yields the shares of the type that their rate limit opens by time t.
func (s *Types) dueShares(ts *Type, t int64) iter.Seq[*share] {
	return func(yield func(*share) bool) {
		s.openings.Scan(func(o opening) bool {
			return o.t <= t && (o.name != ts.name || o.key == "" || yield(ts.shares.byName[o.key]))
		})
	}
}

// openAt reports whether the type is open at time t, and how many claimable tasks it has then,
// including those of shares that open by then.
func (s *Types) openAt(ts *Type, t int64) (ready int64, open bool) {
	ready = int64(ts.ready)
	for sh := range s.dueShares(ts, t) {
		ready += ts.roomOf(sh, t)
	}
	return ready, ready > 0 && ts.isUnlimitedAt(t)
}

// isUnlimitedAt reports whether the type itself permits claims at time t.
func (ts *Type) isUnlimitedAt(t int64) bool {
	r := ts.record
	return r == nil || !r.Settings.Paused && ts.Slots() > 0 && r.ClaimableAt(t) <= t
}

// hasAboveAt is hasAbove at time t: it includes the shares that open by then.
func (s *Types) hasAboveAt(ts *Type, left int32, t int64) bool {
	if ts.hasAbove(left) {
		return true
	}
	for sh := range s.dueShares(ts, t) {
		if len(sh.above(left)) > 0 {
			return true
		}
	}
	return false
}

// ShareView describes a share at one time.
type ShareView struct {
	Key     string
	Waiting int // tasks that are pending, and not behind others of their group
	Claimed int64
	Oldest  uint64 // the oldest of the waiting tasks, or 0
	Gate    ShareGate
	Saved   *record.Share // nil: nothing; read-only
}

// EachShare calls do with each share of the type at time t, in no order.
func (ts *Type) EachShare(t int64, do func(ShareView)) {
	if ts.shares == nil {
		return
	}
	for _, sh := range ts.shares.byName { // callers sort
		do(ts.viewOf(sh, t))
	}
}

// Share returns the view of one share at time t; ok is false if it has neither tasks nor anything saved.
func (ts *Type) Share(key string, t int64) (v ShareView, ok bool) {
	sh := ts.shareNamed(key)
	if sh == nil {
		return ShareView{Key: key}, false
	}
	return ts.viewOf(sh, t), true
}

func (ts *Type) viewOf(sh *share, t int64) ShareView {
	v := ShareView{Key: sh.key, Waiting: sh.count, Claimed: sh.claimed, Saved: sh.saved(), Gate: ts.gateOf(sh, t)}
	v.Oldest, _ = sh.firstOf(oldest).task(oldest)
	return v
}
