package fsm

import (
	"github.com/claimq/claimq/fsm/latency"
	"github.com/claimq/claimq/fsm/record"
)

// Rates are counted in slots of rateSlotMS by T; of the oldest one that the
// window reaches into, the part inside counts as if its tasks had come evenly.
const (
	// rateWindowMS is the time over which rates are told.
	rateWindowMS = 60_000
	rateSlotMS   = 5_000
	rateSlots    = rateWindowMS/rateSlotMS + 1
	// millionths is the unit of rates.
	millionths = 1_000_000
)

// rateKind is what is counted of a type's tasks.
type rateKind uint8

const (
	rateSubmitted rateKind = iota
	rateCompleted
	rateFailed
	rateKinds
)

// typeRates counts the submits and ends of a type's tasks of late.
type typeRates struct {
	slot   int64 // the newest one, T in rateSlotMS
	counts [rateSlots][rateKinds]uint32
	ever   [rateKinds]uint64
}

// add counts one at t, which never goes back.
func (r *typeRates) add(kind rateKind, t int64) {
	if slot := t / rateSlotMS; slot != r.slot {
		for s := max(r.slot+1, slot-rateSlots+1); s <= slot; s++ {
			r.counts[s%rateSlots] = [rateKinds]uint32{}
		}
		r.slot = slot
	}
	r.counts[r.slot%rateSlots][kind]++
	r.ever[kind]++
}

// at returns how many there were of each kind in the window before t, in millionths per
// second.
func (r *typeRates) at(t int64) (perS [rateKinds]int64) {
	for kind := range rateKinds {
		perS[kind] = r.of(kind, t)
	}
	return perS
}

// of is at of one kind.
func (r *typeRates) of(kind rateKind, t int64) (perS int64) {
	if r.ever[kind] == 0 {
		return 0
	}
	now := t / rateSlotMS
	for s := max(now-rateSlots+1, r.slot-rateSlots+1, 0); s <= min(now, r.slot); s++ {
		inside := int64(rateSlotMS)
		if s == now-rateSlots+1 {
			inside -= t % rateSlotMS
		}
		perS += int64(r.counts[s%rateSlots][kind]) * inside
	}
	return perS * millionths / (rateSlotMS * rateWindowMS / record.MSInSecond)
}

// none reports whether all rates are 0 at t.
func (r *typeRates) none(t int64) bool {
	return t/rateSlotMS-r.slot >= rateSlots || r.at(t) == [rateKinds]int64{}
}

// takeBack undoes the last add of the kind, in the same slot.
func (r *typeRates) takeBack(kind rateKind) {
	r.counts[r.slot%rateSlots][kind]--
	r.ever[kind]--
}

// counted is what was counted, so that an atomic batch can take it back.
type counted struct {
	rates *typeRates
	kind  rateKind
}

// takeBack undoes the last count of it, in the same entry.
func (m *Machine) takeBack(c counted) {
	c.rates.takeBack(c.kind)
	m.rates.takeBack(c.kind)
}

// count counts what just became of a task of the type.
func (m *Machine) count(ts *typeState, kind rateKind) {
	ts.rates.add(kind, m.Stamp().T)
	m.rates.add(kind, m.Stamp().T)
	if m.undo != nil {
		m.undo.counted = append(m.undo.counted, counted{&ts.rates, kind})
	}
}

// FollowedMax is of how many types with tasks or settings latencies are counted at most: a type
// that begins takes the place of one that went, if there is one.
const FollowedMax = 100

// Latencies are how long things took, in milliseconds by T.
type Latencies [spans]latency.Histogram

// Span is what takes time.
type Span uint8

const (
	// Waited is the time from when a task became pending, or was changed while it was, to its claim.
	Waited Span = iota
	// Ran is the time from a claim to the completion by it.
	Ran
	spans
)

// timed is a time that was counted, so that an atomic batch can take it back.
type timed struct {
	of   *Latencies // nil: of all types alone
	span Span
	ms   int64
}

// takeBackTime undoes that the time was counted, in the same entry.
func (m *Machine) takeBackTime(t timed) {
	m.latencies[t.span].Remove(t.ms)
	if t.of != nil {
		t.of[t.span].Remove(t.ms)
	}
}

// time counts how long something took that became of a task of the type.
func (m *Machine) time(ts *typeState, span Span, ms int64) {
	m.latencies[span].Add(ms)
	if ts.latencies != nil {
		ts.latencies[span].Add(ms)
	}
	if m.undo != nil {
		m.undo.timed = append(m.undo.timed, timed{ts.latencies, span, ms})
	}
}

// followType gives a type that begins a place among those whose latencies are counted.
func (m *derived) followType(ts *typeState) {
	if m.followed.Len() == FollowedMax {
		ts.latencies = nil
		return
	}
	if ts.latencies == nil {
		ts.latencies = &Latencies{}
	}
	m.followed.Set(ts.Name(), ts)
}

// Activity is how many tasks were submitted and ended, and their latencies. These and Submitted,
// Completed and Failed only grow, but start from 0 when the state was restored, and of a type
// when it had neither tasks, settings nor rates: they are no part of the state.
type Activity struct {
	Submitted, Completed, Failed uint64
	Pending, Claimed             int64
	OldestPendingAgeMS           int64     // 0 if nothing is pending
	Latencies                    Latencies // empty of a type that is not followed
}

// Activity returns that of all tasks, also of those whose types went.
func (m *Machine) Activity(now record.Stamp) Activity {
	return m.activityOf(now, &m.rates, &m.counts, m.types.Oldest(), &m.latencies)
}

// TypeActivity returns that of the type, ok false if it has neither tasks, settings nor rates.
func (m *Machine) TypeActivity(name string, now record.Stamp) (a Activity, ok bool) {
	ts := m.typeShown(name, m.ratesAt(now))
	if ts == nil {
		return Activity{}, false
	}
	return m.activityOf(now, &ts.rates, &ts.counts, ts.Oldest(), ts.latencies), true
}

func (m *saved) activityOf(now record.Stamp, rates *typeRates, counts *[record.StatusCancelled + 1]int64, oldest uint64, l *Latencies) Activity {
	a := Activity{
		Submitted: rates.ever[rateSubmitted], Completed: rates.ever[rateCompleted], Failed: rates.ever[rateFailed],
		Pending: counts[record.StatusPending], Claimed: counts[record.StatusClaimed],
		OldestPendingAgeMS: m.ageOf(oldest, now),
	}
	if l != nil {
		a.Latencies = *l
	}
	return a
}

// FollowedTypes returns the types whose latencies are counted: those with tasks or settings,
// sorted, all but those that began when FollowedMax were there; then those that went and have
// rates, sorted.
func (m *Machine) FollowedTypes(now record.Stamp) []string {
	names := m.followed.Keys()
	for _, ts := range m.went.from("", m.ratesAt(now)) {
		if ts.latencies != nil {
			names = append(names, ts.Name())
		}
	}
	return names
}

// TypeCount returns how many types have tasks, settings or rates.
func (m *Machine) TypeCount(now record.Stamp) int {
	return m.types.Len() + len(m.went.from("", m.ratesAt(now)))
}

// ratesAt returns the time by which rates are told.
func (m *saved) ratesAt(now record.Stamp) int64 { return max(now.T, m.Stamp().T) }
