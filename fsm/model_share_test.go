package fsm

import (
	"cmp"
	"math"
	"math/big"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/index"
	"github.com/claimq/claimq/fsm/record"
)

// shareName names a share.
type shareName struct{ taskType, key string }

func ofShare(t *record.Task) shareName { return shareName{t.Type, t.Opts().ShareKey} }

// modelShare is a share that has settings, or a bucket that is not full.
type modelShare struct {
	record.ShareSettings
	spent *big.Int // in billionths, as of at
	at    int64
}

// share returns what is known of the share, all at defaults if nothing is.
func (s *model) share(n shareName) modelShare {
	sh, known := s.shares[n]
	if !known || n.key == "" {
		return modelShare{spent: new(big.Int), at: s.t}
	}
	return sh
}

// mostOf and rateOf return the limits of the share, 0 if it has none.
func (s *model) mostOf(n shareName) int {
	return int(cmp.Or(s.share(n).MaxClaimed, s.settings(n.taskType).MaxClaimedPerKey))
}

func (s *model) rateOf(n shareName) int64 {
	return cmp.Or(s.share(n).RateLimit, s.settings(n.taskType).RateLimitPerKey)
}

// spentAt returns what is missing in the share's bucket at that time.
func (s *model) spentAt(n shareName, now int64) *big.Int {
	sh := s.share(n)
	left := new(big.Int).Mul(big.NewInt(now-sh.at), big.NewInt(s.rateOf(n)))
	if left.Sub(sh.spent, left); left.Sign() < 0 {
		left.SetInt64(0)
	}
	return left
}

// claimsIn returns how many claims the bucket of the share holds at that time.
func (s *model) claimsIn(n shareName, now int64) int {
	rate := s.rateOf(n)
	if rate == 0 || n.key == "" {
		return math.MaxInt
	}
	left := new(big.Int).Sub(full(rate), s.spentAt(n, now))
	return int(left.Quo(left, big.NewInt(oneClaim9)).Int64())
}

// shareOpensAt returns when the bucket of the share holds a claim, 0 if it does.
func (s *model) shareOpensAt(n shareName, now int64) int64 {
	if s.claimsIn(n, now) > 0 {
		return 0
	}
	rate, sh := s.rateOf(n), s.share(n)
	missing := new(big.Int).Add(sh.spent, big.NewInt(oneClaim9))
	return sh.at + ceilQuo(missing.Sub(missing, full(rate)), rate)
}

// slotsOf returns how many more claims the share may have.
func (s *model) slotsOf(n shareName) int {
	most := s.mostOf(n)
	if most == 0 || n.key == "" {
		return math.MaxInt
	}
	return most - len(s.holdersOf(n.taskType, n.key))
}

// roomIn returns how many more claims the share may have at that time.
func (s *model) roomIn(n shareName, now int64) int {
	if s.share(n).Paused {
		return 0
	}
	return max(0, min(s.slotsOf(n), s.claimsIn(n, now)))
}

// keepShare sets what is known of a share, or forgets it.
func (s *model) keepShare(n shareName, sh modelShare) {
	if sh.ShareSettings == (record.ShareSettings{}) && sh.spent.Sign() == 0 {
		delete(s.shares, n)
		return
	}
	s.shares[n] = sh
}

// spend takes a claim out of the bucket of the task's share.
func (s *model) spend(n shareName) {
	if s.rateOf(n) == 0 || n.key == "" {
		return
	}
	sh := s.share(n)
	sh.spent, sh.at = s.spentAt(n, s.t), s.t
	sh.spent.Add(sh.spent, big.NewInt(oneClaim9))
	s.keepShare(n, sh)
}

// changeRates makes a change, after which what was spent stays spent, as far as buckets hold it.
func (s *model) changeRates(change func()) {
	for n := range s.shares {
		sh := s.share(n)
		sh.spent, sh.at = s.spentAt(n, s.t), s.t
		s.shares[n] = sh
	}
	change()
	for n := range s.shares {
		sh := s.share(n)
		switch rate := s.rateOf(n); {
		case rate == 0:
			sh.spent = new(big.Int)
		case sh.spent.Cmp(full(rate)) > 0:
			sh.spent = full(rate)
		}
		s.keepShare(n, sh)
	}
}

func (s *model) setShare(c command.SetShare) Result {
	n := shareName{c.Type, c.ShareKey}
	if was := s.share(n).ShareSettings; was != c.Settings {
		s.changeRates(func() {
			sh := s.share(n)
			sh.ShareSettings = c.Settings
			s.shares[n] = sh
		})
		if was.Weight != c.Settings.Weight {
			s.reweigh(n)
		}
		s.tell(event.ShareChanged, nil, nil, by(c.Type+" "+c.ShareKey, c.By))
	}
	v := s.shareView(n, s.t)
	return Result{Share: &v}
}

// whyOfShare tells why nothing of the share is claimed.
func (s *model) whyOfShare(n shareName, now int64) (reasons []WhyReason) {
	if n.key == "" {
		return nil
	}
	if s.share(n).Paused {
		reasons = append(reasons, WhyReason{Code: "share_paused", ShareKey: n.key})
	}
	if holders := s.holdersOf(n.taskType, n.key); s.slotsOf(n) <= 0 {
		reasons = append(reasons, WhyReason{Code: "share_limit_reached", ShareKey: n.key, Holders: holders[:min(100, len(holders))]})
	}
	if at := s.shareOpensAt(n, now); at != 0 {
		reasons = append(reasons, WhyReason{Code: "share_rate_limited", ShareKey: n.key, At: at})
	}
	return reasons
}

// waiting counts the tasks of the share that are ready.
func (s *model) waiting(n shareName) (count int64, oldest *record.Task) {
	for _, t := range s.tasks {
		if ofShare(t) == n && s.ready(t) {
			if count++; count == 1 {
				oldest = t
			}
		}
	}
	return count, oldest
}

func (s *model) shareView(n shareName, now int64) ShareView {
	v := ShareView{Key: n.key, Settings: s.share(n).ShareSettings, OpensAt: s.shareOpensAt(n, now), Claimed: int64(len(s.holdersOf(n.taskType, n.key)))}
	switch {
	case v.Settings.Paused:
		v.State = index.SharePaused
	case s.slotsOf(n) <= 0:
		v.State = index.ShareLimited
	case v.OpensAt != 0:
		v.State = index.ShareRateLimited
	}
	count, oldest := s.waiting(n)
	if v.Pending = count; oldest != nil {
		v.OldestWaitMS = max(0, now-oldest.UpdatedAt)
	}
	return v
}

// sharesOf shows the shares of the type that have ready or claimed tasks, or that are kept.
func (s *model) sharesOf(name string, now int64) (views []ShareView) {
	names := map[string]bool{}
	for _, t := range s.tasks {
		if n := ofShare(t); n.taskType == name && n.key != "" && (s.ready(t) || t.Status == record.StatusClaimed) {
			names[n.key] = true
		}
	}
	for n := range s.shares {
		if n.taskType == name && (s.share(n).ShareSettings != (record.ShareSettings{}) || s.spentAt(n, s.t).Sign() > 0) {
			names[n.key] = true
		}
	}
	for key := range names {
		views = append(views, s.shareView(shareName{name, key}, now))
	}
	slices.SortFunc(views, func(a, b ShareView) int { return strings.Compare(a.Key, b.Key) })
	return views
}

// waitingShares sums up the shares of the type that have ready tasks.
func (s *model) waitingShares(name string) (w WaitingShares, ok bool) {
	views := s.sharesOf(name, s.t)
	if len(views) == 0 {
		return w, false
	}
	oldest := uint64(math.MaxUint64)
	for _, v := range append(views, ShareView{}) { // the last one is that of tasks without share key
		count, t := s.waiting(shareName{name, v.Key})
		if count == 0 {
			continue
		}
		if v.Key != "" {
			w.ByState[v.State]++
		}
		if v.State == index.ShareOpen && t.ID < oldest {
			oldest, w.OldestWaitMS = t.ID, max(0, s.t-t.UpdatedAt)
		}
	}
	return w, true
}

// compareShares compares what can be read of shares.
func compareShares(t rapid.TB, g *generator, m *Machine, s *model) {
	now := record.Stamp{U: s.u, T: s.t + pick[int64](g, 0, 1, 400, 5000)}
	for _, name := range []string{"mail", "scan", "video", "dead"} {
		sums, known := s.waitingShares(name)
		if got, ok := m.WaitingShares(name, record.Stamp{U: s.u, T: s.t}); ok != known || diffOf(sums, got) != "" {
			t.Fatalf("shares of %s: %+v, %t, want %+v, %t", name, got, ok, sums, known)
		}
		want := s.sharesOf(name, now.T)
		var got []ShareView
		for after := ""; ; {
			page := m.Shares(name, SharesQuery{After: after, Limit: 2}, now)
			got = append(got, page...)
			if len(page) < 2 {
				break
			}
			after = page[1].Key
		}
		if diff := diffOf(want, got); diff != "" {
			t.Fatalf("shares of %s (-model +machine):\n%s", name, diff)
		}
		slices.SortStableFunc(want, func(a, b ShareView) int { return cmp.Compare(b.Pending, a.Pending) })
		most := pick(g, 1, 2, 1000)
		if diff := diffOf(want[:min(most, len(want))], m.Shares(name, SharesQuery{ByPending: true, Limit: most}, now)); diff != "" {
			t.Fatalf("shares of %s with the most pending tasks (-model +machine):\n%s", name, diff)
		}
		set := slices.DeleteFunc(s.sharesOf(name, now.T), func(v ShareView) bool { return v.Settings == (record.ShareSettings{}) })
		if diff := diffOf(set, m.Shares(name, SharesQuery{Set: true, Limit: 1000}, now)); diff != "" {
			t.Fatalf("shares of %s with settings (-model +machine):\n%s", name, diff)
		}
	}
}
