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
