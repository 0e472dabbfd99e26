package fsm

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/claimq/claimq/fsm/index"
	"github.com/claimq/claimq/fsm/record"
)

// Stats has the counts of the state.
type Stats struct {
	Index              uint64
	Counts             [record.StatusCancelled + 1]int64 // by Status
	Types              []TypeStats                       // sorted by type
	Bytes              int64
	OldestPendingAgeMS int64 // 0 if no task is pending
}

// TypeStats has the counts of one type.
type TypeStats struct {
	Type   string
	Counts [record.StatusCancelled + 1]int64
}

// Stats returns the counts at Index. It lists the types that have tasks, including ended ones. The
// oldest pending task is the one submitted first; its age counts from its submit even after a
// requeue.
func (m *Machine) Stats(now record.Stamp) Stats {
	s := Stats{Index: m.Index(), Counts: m.counts, Bytes: m.Bytes()}
	if n := m.types.Len(); n > 0 {
		s.Types = make([]TypeStats, 0, n)
	}
	for ts := range m.types.from("") {
		if ts.tasks > 0 {
			s.Types = append(s.Types, TypeStats{Type: ts.Name(), Counts: ts.counts})
		}
	}
	s.OldestPendingAgeMS = ageOf(m, m.types.Oldest(), now)
	return s
}

// ageOf returns how long ago the task was submitted, 0 for id 0.
func ageOf(m *Machine, id uint64, now record.Stamp) int64 {
	if id == 0 {
		return 0
	}
	return max(now.T-m.Get(id).CreatedAt, 0)
}

// Counts returns the number of tasks by Status.
func (m *Machine) Counts() [record.StatusCancelled + 1]int64 { return m.counts }

// Types returns the types with tasks, settings or rates, sorted by name, starting after after. It
// returns at most limit, 0 = all. Ages are relative to now.
func (m *Machine) Types(after string, limit int, now record.Stamp) []TypeView {
	if limit == 0 {
		limit = math.MaxInt
	}
	views := make([]TypeView, 0, min(m.types.Len(), limit))
	for ts := range m.types.shownFrom(after, ratesAt(m, now)) {
		if len(views) == limit {
			break
		}
		if ts.Name() > after {
			views = append(views, viewOf(m, ts, now))
		}
	}
	return views
}

// Type returns the view of the type; ok is false if it has neither tasks, settings nor rates.
func (m *Machine) Type(name string, now record.Stamp) (v TypeView, ok bool) {
	ts := m.types.shown(name, ratesAt(m, now))
	if ts == nil {
		return TypeView{Type: name}, false
	}
	return viewOf(m, ts, now), true
}

func viewOf(m *Machine, ts *typeState, now record.Stamp) TypeView {
	v := TypeView{Type: ts.Name(), Counts: ts.counts}
	if r := ts.Record(); r != nil {
		v.Settings, v.Move = r.Settings, r.Move
	}
	perS := ts.rates.at(ratesAt(m, now))
	v.SubmittedPerS, v.CompletedPerS, v.FailedPerS = perS[rateSubmitted], perS[rateCompleted], perS[rateFailed]
	if id := ts.Oldest(); id != 0 {
		t := m.Get(id)
		v.OldestPendingAgeMS = max(now.T-t.CreatedAt, 0)
		v.OldestWaitMS = max(now.T-t.UpdatedAt, 0)
		v.OldestPending = id
	}
	return v
}

// TypesQuery selects types among those with tasks, settings or rates. The zero value selects all,
// by name.
type TypesQuery struct {
	Name      string // only names containing this, ignoring case
	Attention bool   // only those that need attention
	After     string // only names after this one
	Order     TypeOrder
	Limit     int                    // 0 = all
	See       func(name string) bool // reports whether a type is visible; nil = all are
	// Look bounds the types that one look scans, and those that it reads for the answer; 0 = all.
	Look int
}

// TypesFound collects the results of a TypesQuery over several looks, each of which continues
// where the last one ended. The zero value is empty.
type TypesFound struct {
	Types   []TypeView
	Total   int      // number of types
	Matched int      // number of matching types, regardless of Limit
	All     TypeView // totals of all types; rates include types that are gone

	first  firstTypes
	behind string // the type scanned last
	walked bool   // all are scanned; now those of first are read
	read   int    // how many of these are read
	oldest uint64 // the oldest pending task
}

// TypeOrder is the order of types: "" or name; or descending by the count of a status, by oldest
// (the age of the oldest pending task), or by a rate, such as submitted_per_s.
type TypeOrder string

// Valid reports whether the order exists.
func (o TypeOrder) Valid() bool {
	_, ok := o.key(0)
	return ok
}

// ByName reports whether types are sorted by name.
func (o TypeOrder) ByName() bool { return o == "" || o == "name" }

// key returns the sort key of types at time t: the largest first, equal ones by name.
func (o TypeOrder) key(t int64) (key func(*typeState) int64, ok bool) {
	rate := func(kind rateKind) func(*typeState) int64 {
		return func(ts *typeState) int64 { return ts.rates.perSecond(kind, t) }
	}
	switch o {
	case "", "name":
		return func(*typeState) int64 { return 0 }, true
	case "oldest":
		// Ids grow with time, so the smallest id is the oldest task.
		return func(ts *typeState) int64 {
			if ts.Oldest() == 0 {
				return math.MinInt64
			}
			return -int64(ts.Oldest())
		}, true
	case "submitted_per_s":
		return rate(rateSubmitted), true
	case "completed_per_s":
		return rate(rateCompleted), true
	case "failed_per_s":
		return rate(rateFailed), true
	}
	status, ok := record.ParseStatus(string(o))
	return func(ts *typeState) int64 { return ts.counts[status] }, ok
}

// FindTypes continues the query and adds its results to f. It reports whether another look is
// needed; each look sees the state at its time. It reads no tasks of types that are left out.
// Ages are relative to now.
func (m *Machine) FindTypes(f *TypesFound, q TypesQuery, now record.Stamp) (more bool) {
	left := q.Look
	if left == 0 {
		left = math.MaxInt
	}
	if !f.walked && !walkTypes(m, f, q, now, &left) {
		return true
	}
	types, t := f.first.types, ratesAt(m, now)
	f.Types = slices.Grow(f.Types, min(len(types)-f.read, left))
	for ; f.read < len(types) && left > 0; left-- {
		if ts := m.types.shown(types[f.read].name, t); ts != nil {
			f.Types = append(f.Types, viewOf(m, ts, now))
		} else { // it was removed between two looks
			f.Total--
			f.Matched--
		}
		f.read++
	}
	return f.read < len(types)
}

// walkTypes scans the next types, up to left of them, and reports whether it reached the end.
func walkTypes(m *Machine, f *TypesFound, q TypesQuery, now record.Stamp, left *int) (all bool) {
	t := ratesAt(m, now)
	key, _ := q.Order.key(t)
	f.first.limit = q.Limit
	if f.behind == "" && q.See == nil {
		perS := m.rates.at(t)
		f.All.Counts = m.counts
		f.All.SubmittedPerS, f.All.CompletedPerS, f.All.FailedPerS = perS[rateSubmitted], perS[rateCompleted], perS[rateFailed]
	}
	name, waits := strings.ToLower(q.Name), waitsLong{m: m, before: now.T - attentionWaitMS}
	oldest := f.oldest
	for ts := range m.types.shownFrom(f.behind, t) {
		if ts.Name() == f.behind {
			continue
		}
		if *left == 0 {
			f.setOldest(oldest, m, now)
			return false
		}
		*left--
		f.behind = ts.Name()
		if q.See != nil {
			if !q.See(ts.Name()) {
				continue
			}
			f.addCounts(ts, t)
		}
		f.Total++
		if ts.Oldest() != 0 && (oldest == 0 || ts.Oldest() < oldest) {
			oldest = ts.Oldest()
		}
		if ts.Name() <= q.After {
			continue
		}
		if name != "" && !strings.Contains(strings.ToLower(ts.Name()), name) || q.Attention && !ts.needsAttention(t, &waits) {
			continue
		}
		f.Matched++
		f.first.add(key(ts), ts.Name())
	}
	f.setOldest(oldest, m, now)
	f.first.sort()
	f.walked = true
	return true
}

// setOldest stores the age of the oldest pending task, which may no longer exist at a later look.
func (f *TypesFound) setOldest(id uint64, m *Machine, now record.Stamp) {
	if id != f.oldest {
		f.oldest, f.All.OldestPendingAgeMS = id, ageOf(m, id, now)
	}
}

// addCounts adds a type's counts to the totals.
func (f *TypesFound) addCounts(ts *typeState, t int64) {
	for status, n := range ts.counts {
		f.All.Counts[status] += n
	}
	perS := ts.rates.at(t)
	f.All.SubmittedPerS += perS[rateSubmitted]
	f.All.CompletedPerS += perS[rateCompleted]
	f.All.FailedPerS += perS[rateFailed]
}

// firstTypes keeps the first types by key, largest first. Equal ones stay in the order in which
// they were added.
type firstTypes struct {
	limit int // 0: all, which are sorted at the end
	types []keyedType
}

// keyedType is a type with its sort key.
type keyedType struct {
	key  int64
	name string
}

func (f *firstTypes) add(key int64, name string) {
	at := len(f.types)
	if f.limit > 0 {
		// After all types with an equal key.
		at = sort.Search(at, func(i int) bool { return f.types[i].key < key })
		if at == f.limit {
			return
		}
		f.types = f.types[:min(len(f.types), f.limit-1)]
	}
	f.types = slices.Insert(f.types, at, keyedType{key, name})
}

// sort puts them in order.
func (f *firstTypes) sort() {
	if f.limit == 0 {
		slices.SortStableFunc(f.types, func(a, b keyedType) int { return cmp.Compare(b.key, a.key) })
	}
}

// SharesTopMax bounds the shares of SharesQuery.ByPending.
const SharesTopMax = 100

// SharesQuery selects shares of a type that have pending or claimed tasks, or settings.
type SharesQuery struct {
	After     string // only those behind this share key; not with ByPending
	ByPending bool   // those with most pending tasks first, equal ones by share key; else all by share key
	Set       bool   // only those with settings
	Limit     int    // above 0; with ByPending at most SharesTopMax count
}

// Shares returns the shares of the type that the query selects. It takes time for each share of
// the type.
func (m *Machine) Shares(name string, q SharesQuery, now record.Stamp) []ShareView {
	ts := m.types.named(name)
	if ts == nil {
		return nil
	}
	limit, order := q.Limit, func(a, b index.ShareView) int { return strings.Compare(a.Key, b.Key) }
	if q.ByPending {
		limit = min(limit, SharesTopMax)
		order = func(a, b index.ShareView) int {
			return cmp.Or(cmp.Compare(b.Waiting, a.Waiting), strings.Compare(a.Key, b.Key))
		}
	}
	var first []index.ShareView
	ts.EachShare(ratesAt(m, now), func(v index.ShareView) {
		isSet := v.Saved != nil && v.Saved.Settings != (record.ShareSettings{})
		switch {
		case v.Key <= q.After, q.Set && !isSet, len(first) == limit && order(v, first[limit-1]) > 0:
			return
		case len(first) == limit:
			first = first[:limit-1]
		}
		at, _ := slices.BinarySearchFunc(first, v, order)
		first = slices.Insert(first, at, v)
	})
	views := make([]ShareView, len(first))
	for i, v := range first {
		views[i] = viewOfShare(m, v, now)
	}
	return views
}

// Share returns the view of one share; ok is false if it has neither tasks nor settings.
func (m *Machine) Share(name, key string, now record.Stamp) (v ShareView, ok bool) {
	ts := m.types.named(name)
	if ts == nil {
		return ShareView{Key: key}, false
	}
	of, ok := ts.Share(key, ratesAt(m, now))
	return viewOfShare(m, of, now), ok
}

// WaitingShares sums up the shares of a type; ok is false if it has none. It takes the same time
// however many there are.
func (m *Machine) WaitingShares(name string, now record.Stamp) (w WaitingShares, ok bool) {
	ts := m.types.named(name)
	if ts == nil || ts.Shares() == 0 {
		return w, false
	}
	w.ByState = ts.WaitingShares()
	if id := ts.OldestOpen(); id != 0 {
		w.OldestWaitMS = max(now.T-m.Get(id).UpdatedAt, 0)
	}
	return w, true
}

func viewOfShare(m *Machine, of index.ShareView, now record.Stamp) ShareView {
	v := ShareView{Key: of.Key, Pending: int64(of.Waiting), Claimed: of.Claimed, State: of.Gate.State(), OpensAt: of.Gate.OpensAt}
	if of.Saved != nil {
		v.Settings = of.Saved.Settings
	}
	if of.Oldest != 0 {
		v.OldestWaitMS = max(now.T-m.Get(of.Oldest).UpdatedAt, 0)
	}
	return v
}

// attentionWaitMS is the time that a task may be pending while no worker works on its type.
const attentionWaitMS = 60_000

// needsAttention reports whether an operator should look at the type: it is paused, is at its
// limit of claims while tasks are pending, has tasks that no worker claims, or has recently failed
// tasks. Rates are as of time t.
func (ts *typeState) needsAttention(t int64, waits *waitsLong) bool {
	if r := ts.Record(); r != nil {
		s := &r.Settings
		if s.Paused || s.MaxClaimed != 0 && ts.counts[record.StatusClaimed] >= int64(s.MaxClaimed) && ts.counts[record.StatusPending] > 0 {
			return true
		}
	}
	return ts.rates.perSecond(rateFailed, t) > 0 ||
		ts.Oldest() != 0 && ts.counts[record.StatusClaimed] == 0 && waits.has(ts.Oldest()) && ts.rates.perSecond(rateCompleted, t) == 0
}

// waitsLong reports which tasks were created before a time. It looks at few of them, because ids
// grow with time.
type waitsLong struct {
	m      *Machine
	before int64
	old    uint64 // the largest id known to be created before
	young  uint64 // the smallest id known not to be; 0 = unknown
}

func (w *waitsLong) has(id uint64) bool {
	switch {
	case id <= w.old:
		return true
	case w.young != 0 && id >= w.young:
		return false
	case w.m.Get(id).CreatedAt < w.before:
		w.old = id
		return true
	}
	w.young = id
	return false
}

// History returns the last minutes of the type, or of all tasks if name is "", up to the one under
// way at now.
func (m *Machine) History(name string, minutes int, now record.Stamp) HistoryView {
	s := m.histories.byType[name]
	if s == nil {
		return HistoryView{Kept: name == ""}
	}
	to := ratesAt(m, now)
	nowAt, open := to/record.MSInMinute, endOf(m, s)
	first := max(nowAt-int64(min(minutes, record.HistoryMinutes))+1, s.Since)
	v := HistoryView{Since: s.Since * record.MSInMinute, From: first * record.MSInMinute, To: to, Kept: true}
	i, _ := slices.BinarySearchFunc(s.Minutes, first, func(m record.Minute, at int64) int { return cmp.Compare(m.At, at) })
	var before record.Minute
	switch {
	case open.At < first:
		before = open
	case i > 0:
		before = s.Minutes[i-1]
	}
	for at := first; at <= nowAt; at++ {
		minute := before.Unchanged(at)
		switch {
		case i < len(s.Minutes) && s.Minutes[i].At == at:
			minute = s.Minutes[i]
			i++
		case at == open.At:
			minute = open
		}
		v.Minutes = append(v.Minutes, minute)
		before = minute
	}
	return v
}

// ratesAt returns the time for which rates are computed.
func ratesAt(m *Machine, now record.Stamp) int64 { return max(now.T, m.Stamp().T) }
