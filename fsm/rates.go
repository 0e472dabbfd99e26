package fsm

import "github.com/claimq/claimq/fsm/record"

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

// at returns how many there were in the window before t, in millionths per
// second.
func (r *typeRates) at(t int64) (perS [rateKinds]int64) {
	now := t / rateSlotMS
	for s := max(now-rateSlots+1, r.slot-rateSlots+1, 0); s <= min(now, r.slot); s++ {
		inside := int64(rateSlotMS)
		if s == now-rateSlots+1 {
			inside -= t % rateSlotMS
		}
		for kind, n := range r.counts[s%rateSlots] {
			perS[kind] += int64(n) * inside
		}
	}
	for kind := range perS {
		perS[kind] = perS[kind] * millionths / (rateSlotMS * rateWindowMS / record.MSInSecond)
	}
	return perS
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
	ts.rates.add(kind, m.header.Stamp.T)
	m.rates.add(kind, m.header.Stamp.T)
	if m.undo != nil {
		m.undo.counted = append(m.undo.counted, counted{&ts.rates, kind})
	}
}
