package fsm

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/claimq/claimq/fsm/record"
)

// Stats are the counts of the state.
type Stats struct {
	Index              uint64
	Counts             [record.StatusCancelled + 1]int64 // by Status
	Types              []TypeStats                       // sorted by type
	Bytes              int64
	OldestPendingAgeMS int64 // 0 if nothing is pending
}

// TypeStats are the counts of one type.
type TypeStats struct {
	Type   string
	Counts [record.StatusCancelled + 1]int64
}

// Stats returns the counts, exact at Index. The types are those that have
// tasks, ended ones too. The oldest pending task is the one that was submitted
// first; its age counts from then, also after a requeue.
func (m *Machine) Stats(now record.Stamp) Stats {
	s := Stats{Index: m.Index(), Counts: m.counts, Bytes: m.Bytes()}
	if n := m.types.Len(); n > 0 {
		s.Types = make([]TypeStats, 0, n)
	}
	for ts := range m.typesFrom("") {
		if ts.tasks > 0 {
			s.Types = append(s.Types, TypeStats{Type: ts.Name(), Counts: ts.counts})
		}
	}
	s.OldestPendingAgeMS = m.ageOf(m.types.Oldest(), now)
	return s
}

// ageOf returns how long ago the task was submitted, 0 for id 0.
func (m *saved) ageOf(id uint64, now record.Stamp) int64 {
	if id == 0 {
		return 0
	}
	return max(now.T-m.Get(id).CreatedAt, 0)
}

// TypeView is what can be seen of a task type.
type TypeView struct {
	Type     string
	Counts   [record.StatusCancelled + 1]int64 // by Status
	Settings record.TypeSettings
	// OldestPendingAgeMS is the age of the pending task that was submitted
	// first; 0 if none is pending.
	OldestPendingAgeMS int64
	// OldestWaitMS is how long that task has waited to be claimed: since its
	// submit, or since its RunAt.
	OldestWaitMS int64
	// How many of its tasks were submitted, completed and failed for good, in
	// millionths per second over the last minute, by T. They are no part of the
	// state, and so not in results: they are counted again after a restart or a
	// restore.
	SubmittedPerS, CompletedPerS, FailedPerS int64
}

// Counts returns how many tasks there are, by Status.
func (m *Machine) Counts() [record.StatusCancelled + 1]int64 { return m.counts }

// Types returns what can be seen of the types that have tasks, settings or rates, sorted by name:
// those behind after, limit of them at most, 0 = all. now is the time by which ages are told.
func (m *Machine) Types(after string, limit int, now record.Stamp) []TypeView {
	if limit == 0 {
		limit = math.MaxInt
	}
	views := make([]TypeView, 0, min(m.types.Len(), limit))
	for ts := range m.shownFrom(after, m.ratesAt(now)) {
		if len(views) == limit {
			break
		}
		if ts.Name() > after {
			views = append(views, m.viewOf(ts, now))
		}
	}
	return views
}

// Type returns what can be seen of the type, ok false if it has neither tasks,
// settings nor rates.
func (m *Machine) Type(name string, now record.Stamp) (v TypeView, ok bool) {
	ts := m.typeShown(name, m.ratesAt(now))
	if ts == nil {
		return TypeView{Type: name}, false
	}
	return m.viewOf(ts, now), true
}

func (m *saved) viewOf(ts *typeState, now record.Stamp) TypeView {
	v := TypeView{Type: ts.Name(), Counts: ts.counts}
	if r := ts.Record(); r != nil {
		v.Settings = r.Settings
	}
	perS := ts.rates.at(m.ratesAt(now))
	v.SubmittedPerS, v.CompletedPerS, v.FailedPerS = perS[rateSubmitted], perS[rateCompleted], perS[rateFailed]
	if id := ts.Oldest(); id != 0 {
		t := m.Get(id)
		v.OldestPendingAgeMS = max(now.T-t.CreatedAt, 0)
		v.OldestWaitMS = max(now.T-max(t.CreatedAt, t.RunAt), 0)
	}
	return v
}

// TypesQuery says which types are asked for, of those that have tasks, settings or rates. The
// zero value: all, by name.
type TypesQuery struct {
	Name      string // only those with this in their names, in whichever case
	Attention bool   // only those that need attention
	After     string // only those behind this one, by name
	Order     TypeOrder
	Limit     int                    // how many at most; 0 = all
	See       func(name string) bool // there are no others; nil = there are
	// Look is how many types one look goes through, and how many it reads for the answer; 0 = all.
	Look int
}

// TypesFound is what a TypesQuery has found by the looks so far, of which each goes on where
// the one before ended. The zero value has found nothing.
type TypesFound struct {
	Types   []TypeView
	Total   int      // how many types there are
	Matched int      // how many there would be without Limit
	All     TypeView // of all types together; their rates have those of types that went, too

	first  firstTypes
	behind string // the type that was looked at last
	walked bool   // all were looked at; those of first are read now
	read   int    // of these
	oldest uint64 // the task that has been pending longest
}

// TypeOrder is what types are sorted by: "" or name, or what they have most of: a status,
// oldest (the task that has been pending longest), or a rate, as submitted_per_s.
type TypeOrder string

// Valid reports whether there is such an order.
func (o TypeOrder) Valid() bool {
	_, ok := o.key(0)
	return ok
}

// ByName reports whether types are sorted by their names.
func (o TypeOrder) ByName() bool { return o == "" || o == "name" }

// key returns what types are sorted by at t, the largest first, equal ones by name.
func (o TypeOrder) key(t int64) (key func(*typeState) int64, ok bool) {
	rate := func(kind rateKind) func(*typeState) int64 {
		return func(ts *typeState) int64 { return ts.rates.of(kind, t) }
	}
	switch o {
	case "", "name":
		return func(*typeState) int64 { return 0 }, true
	case "oldest":
		// No task is older than one with a smaller id.
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

// FindTypes adds to f what q asks for, and reports whether another look has to go on: what it
// finds is as of then. Of the types that are left out it looks at no task. now is the time by
// which ages are told.
func (m *Machine) FindTypes(f *TypesFound, q TypesQuery, now record.Stamp) (more bool) {
	left := q.Look
	if left == 0 {
		left = math.MaxInt
	}
	if !f.walked && !m.walkTypes(f, q, now, &left) {
		return true
	}
	types, t := f.first.types, m.ratesAt(now)
	f.Types = slices.Grow(f.Types, min(len(types)-f.read, left))
	for ; f.read < len(types) && left > 0; left-- {
		if ts := m.typeShown(types[f.read].name, t); ts != nil {
			f.Types = append(f.Types, m.viewOf(ts, now))
		} else { // it went between two looks
			f.Total--
			f.Matched--
		}
		f.read++
	}
	return f.read < len(types)
}

// walkTypes goes through the next types, up to left of them, and reports whether it came to
// the end.
func (m *Machine) walkTypes(f *TypesFound, q TypesQuery, now record.Stamp, left *int) (all bool) {
	t := m.ratesAt(now)
	key, _ := q.Order.key(t)
	f.first.limit = q.Limit
	if f.behind == "" && q.See == nil {
		perS := m.rates.at(t)
		f.All.Counts = m.counts
		f.All.SubmittedPerS, f.All.CompletedPerS, f.All.FailedPerS = perS[rateSubmitted], perS[rateCompleted], perS[rateFailed]
	}
	name, waits := strings.ToLower(q.Name), waitsLong{m: m, before: now.T - attentionWaitMS}
	oldest := f.oldest
	for ts := range m.shownFrom(f.behind, t) {
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

// setOldest notes the task that has been pending longest, which a later look may not find any
// more.
func (f *TypesFound) setOldest(id uint64, m *Machine, now record.Stamp) {
	if id != f.oldest {
		f.oldest, f.All.OldestPendingAgeMS = id, m.ageOf(id, now)
	}
}

// addCounts adds what a type has to what all have together.
func (f *TypesFound) addCounts(ts *typeState, t int64) {
	for status, n := range ts.counts {
		f.All.Counts[status] += n
	}
	perS := ts.rates.at(t)
	f.All.SubmittedPerS += perS[rateSubmitted]
	f.All.CompletedPerS += perS[rateCompleted]
	f.All.FailedPerS += perS[rateFailed]
}

// firstTypes are the first of the types that are added, which come by name: those of the
// largest keys, of equal ones those that came first.
type firstTypes struct {
	limit int // 0: all, which are sorted in the end
	types []keyedType
}

// keyedType is a type and what it is sorted by.
type keyedType struct {
	key  int64
	name string
}

func (f *firstTypes) add(key int64, name string) {
	at := len(f.types)
	if f.limit > 0 {
		// Behind all that are as large.
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

// attentionWaitMS is how long a task may be pending while nobody is at work on its type.
const attentionWaitMS = 60_000

// needsAttention reports whether somebody should look at the type: it is paused, has as
// many claims as it may while tasks are pending, has tasks that nobody comes for, or
// tasks have failed for good of late. t is the time by which rates are told.
func (ts *typeState) needsAttention(t int64, waits *waitsLong) bool {
	if r := ts.Record(); r != nil {
		s := &r.Settings
		if s.Paused || s.MaxClaimed != 0 && ts.counts[record.StatusClaimed] >= int64(s.MaxClaimed) && ts.counts[record.StatusPending] > 0 {
			return true
		}
	}
	return ts.rates.of(rateFailed, t) > 0 ||
		ts.Oldest() != 0 && ts.counts[record.StatusClaimed] == 0 && waits.has(ts.Oldest()) && ts.rates.of(rateCompleted, t) == 0
}

// waitsLong tells which tasks were created before a time, and looks at few of them: no
// task is older than one with a smaller id.
type waitsLong struct {
	m      *Machine
	before int64
	old    uint64 // the largest id that is known to be of an old one
	young  uint64 // the smallest that is known to be of one that is not; 0: none is
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
