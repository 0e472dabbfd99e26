package fsm

import (
	"github.com/claimq/claimq/fsm/latency"
	"github.com/claimq/claimq/fsm/record"
)

// Rates are counted in slots of rateSlotMS by T. If the window covers the oldest slot only in part,
// that share of its tasks is counted.
const (
	// rateWindowMS is the time over which rates are averaged.
	rateWindowMS = 60_000
	rateSlotMS   = 5_000
	rateSlots    = rateWindowMS/rateSlotMS + 1
	// millionths is the unit of rates.
	millionths = 1_000_000
)

// rateKind is an event of a type's tasks that is counted.
type rateKind uint8

const (
	rateSubmitted rateKind = iota
	rateCompleted
	rateFailed
	rateKinds
)

// typeRates counts the recent submits and ends of a type's tasks.
type typeRates struct {
	slot   int64 // the newest one, T / rateSlotMS
	counts [rateSlots][rateKinds]uint32
	ever   [rateKinds]uint64
}

// add counts one event at time t, which must not go back.
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

// at returns the rate of each kind over the window before t, in millionths per second.
func (r *typeRates) at(t int64) (perS [rateKinds]int64) {
	for kind := range rateKinds {
		perS[kind] = r.of(kind, t)
	}
	return perS
}

// of is at for one kind.
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

// counted is an event that was counted, so that an atomic batch can take it back.
type counted struct {
	rates *typeRates
	kind  rateKind
}

// takeBack undoes the last count of c in the same entry.
func (m *Machine) takeBack(c counted) {
	c.rates.takeBack(c.kind)
	m.rates.takeBack(c.kind)
}

// count counts an event of a task of the type.
func (m *Machine) count(ts *typeState, kind rateKind) {
	ts.rates.add(kind, m.Stamp().T)
	m.rates.add(kind, m.Stamp().T)
	if m.undo != nil {
		m.undo.counted = append(m.undo.counted, counted{&ts.rates, kind})
	}
}

// FollowedMax bounds the types with tasks or settings whose latencies are counted. A new type takes
// a place that another type has left.
const FollowedMax = 100

// Latencies are histograms of durations, in milliseconds by T.
type Latencies [spans]latency.Histogram

// Span is a duration that is measured.
type Span uint8

const (
	// Waited is the time until a task is claimed, from when it became pending or was last changed
	// while pending.
	Waited Span = iota
	// Ran is the time from a claim to the completion by it.
	Ran
	spans
)

// timed is a duration that was counted, so that an atomic batch can take it back.
type timed struct {
	of   *Latencies // nil: counted only in the total of all types
	span Span
	ms   int64
}

// takeBackTime undoes the count of t in the same entry.
func (m *Machine) takeBackTime(t timed) {
	m.latencies[t.span].Remove(t.ms)
	if t.of != nil {
		t.of[t.span].Remove(t.ms)
	}
}

// time counts a duration of a task of the type.
func (m *Machine) time(ts *typeState, span Span, ms int64) {
	m.latencies[span].Add(ms)
	if ts.latencies != nil {
		ts.latencies[span].Add(ms)
	}
	if m.undo != nil {
		m.undo.timed = append(m.undo.timed, timed{ts.latencies, span, ms})
	}
}

// followType starts counting the latencies of a new type, if there is room.
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

// Activity has counts of tasks submitted and ended, and their latencies. These counters are not part
// of the state: they only grow, but restart from 0 when the state is restored, and those of a type
// when it had neither tasks, settings nor rates.
type Activity struct {
	Submitted, Completed, Failed uint64
	Pending, Claimed             int64
	OldestPendingAgeMS           int64     // 0 if no task is pending
	Latencies                    Latencies // empty for a type that is not followed
}

// Activity returns the activity of all tasks, including types that are gone.
func (m *Machine) Activity(now record.Stamp) Activity {
	return m.activityOf(now, &m.rates, &m.counts, m.types.Oldest(), &m.latencies)
}

// TypeActivity returns the activity of the type; ok is false if it has neither tasks, settings nor
// rates.
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

// FollowedTypes returns the types whose latencies are counted: first those with tasks or settings,
// then those that are gone but still have rates, each part sorted.
func (m *Machine) FollowedTypes(now record.Stamp) []string {
	names := m.followed.Keys()
	for _, ts := range m.went.from("", m.ratesAt(now)) {
		if ts.latencies != nil {
			names = append(names, ts.Name())
		}
	}
	return names
}

// TypeCount returns the number of types with tasks, settings or rates.
func (m *Machine) TypeCount(now record.Stamp) int {
	return m.types.Len() + len(m.went.from("", m.ratesAt(now)))
}

// ratesAt returns the time for which rates are computed.
func (m *saved) ratesAt(now record.Stamp) int64 { return max(now.T, m.Stamp().T) }
