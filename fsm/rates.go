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

// rateKind is a kind of event whose rate is counted.
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

// at returns perSecond of each kind.
func (r *typeRates) at(t int64) (perS [rateKinds]int64) {
	for kind := range rateKinds {
		perS[kind] = r.perSecond(kind, t)
	}
	return perS
}

// perSecond returns the rate of one kind over the window before t, in millionths per second.
func (r *typeRates) perSecond(kind rateKind, t int64) (perS int64) {
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
	of    *record.History // of the type; nil: it has none, so only the history of all tasks counted it
	kind  rateKind
}

// Span is a duration that is measured.
type Span uint8

const (
	// Waited is the time until a task is claimed, from when it became pending or was last changed
	// while pending.
	Waited Span = iota
	// Ran is the time from a claim to the completion by it.
	Ran
)

// histories counts, minute by minute, what happened to all tasks, and to those of the types that
// came first, up to record.HistoriesMax.
type histories struct {
	all    []*record.History // saved; first the one of all tasks, then those of types in the order in which they began
	byType map[string]*record.History
	minute int64 // the one under way, by T
	bytes  int64
}

func newHistories() histories { return histories{byType: map[string]*record.History{}} }

// of returns the history of a type, or nil if it has none.
func (h *histories) of(name string) *record.History {
	if name == "" {
		return nil // the history of all tasks is not a type's
	}
	return h.byType[name]
}

// begin begins a history in the minute under way, if there is room.
func (h *histories) begin(name string) *record.History {
	if len(h.all) == record.HistoriesMax {
		return nil
	}
	s := &record.History{Type: name, Since: h.minute, Open: record.Minute{At: h.minute}}
	h.add(s)
	return s
}

func (h *histories) add(s *record.History) {
	h.all = append(h.all, s)
	h.byType[s.Type] = s
	h.bytes += record.BytesOfHistory(s)
}

// total returns the history of all tasks. The first call begins it.
func (h *histories) total() *record.History {
	if len(h.all) == 0 {
		return h.begin("")
	}
	return h.all[0]
}

// load adds the saved histories. It returns the first that is there twice, or nil.
func (h *histories) load(all []*record.History) (twice *record.History) {
	for _, s := range all {
		if h.byType[s.Type] != nil {
			return s
		}
		h.minute = s.Open.At
		h.add(s)
	}
	return nil
}

// view copies the histories for a snapshot. Their minutes are shared, because they never change.
func (h *histories) view() []record.History {
	all := make([]record.History, len(h.all))
	for i, s := range h.all {
		all[i] = *s
	}
	return all
}

// counterOf returns the counter of the kind in the minute under way.
func counterOf(s *record.History, kind rateKind) *uint32 {
	return [rateKinds]*uint32{&s.Open.Submitted, &s.Open.Completed, &s.Open.Failed}[kind]
}

// timesOf returns the durations of the minute under way.
func timesOf(s *record.History, span Span) *latency.Histogram {
	return (*latency.Histogram)(&s.Times[span])
}

// endedMinute returns the minute under way as it ends now: with the counts, the oldest pending
// task and the quantiles of its durations.
func endedMinute(s *record.History, counts *[record.StatusCancelled + 1]int64, oldestAt int64) record.Minute {
	m := s.Open
	m.Pending, m.Claimed, m.OldestAt = uint32(counts[record.StatusPending]), uint32(counts[record.StatusClaimed]), oldestAt
	for span := range m.Times {
		of := timesOf(s, Span(span))
		m.Times[span] = record.Quantiles{P50: uint8(of.Quantile(500)), P99: uint8(of.Quantile(990))}
	}
	return m
}

// lastMinute returns the last minute that has ended with a change, or the zero minute.
func lastMinute(s *record.History) (m record.Minute) {
	if n := len(s.Minutes); n > 0 {
		m = s.Minutes[n-1]
	}
	return m
}

// passMinute begins the minute now in a history. m is the ended minute before it; it is kept if it
// changed something.
func passMinute(s *record.History, m record.Minute, now int64) {
	if before := lastMinute(s); m != before.Unchanged(m.At) {
		s.Minutes = append(s.Minutes, m)
	}
	for len(s.Minutes) > 1 && s.Minutes[1].At <= now-record.HistoryMinutes {
		s.Minutes = s.Minutes[1:]
	}
	s.Open, s.Times = record.Minute{At: now}, [record.HistorySpans][record.HistoryBuckets]uint64{}
}

// HistoryView is the part of a history that was asked for. All times are by T.
type HistoryView struct {
	Since int64 // the beginning of the first minute that was seen; 0: none
	From  int64 // the beginning of Minutes
	To    int64 // the end of the last one, which is under way
	Kept  bool  // false: the type has no history
	// Minutes are one for each minute, the oldest first.
	Minutes []record.Minute
}

// timed is a duration that was counted, so that an atomic batch can take it back.
type timed struct {
	of   *record.History // as in counted
	span Span
	ms   int64
}
