package fsm

import (
	"github.com/claimq/claimq/fsm/index"
	"github.com/claimq/claimq/fsm/record"
)

// Bounds for remembered removed tasks.
const (
	goneMS      = 10 * 60 * 1000 // by the lease clock, after the removal
	goneMax     = 1_000_000      // beyond it the oldest are forgotten
	goneTickMax = 1024           // tasks forgotten per tick
	// goneForgottenMax bounds the records forgotten for each new one. It is above 1, so that
	// no backlog builds up between ticks.
	goneForgottenMax = 2
	// busyGone is the number of pages at the end that are never packed. One suffices: tasks
	// are removed roughly in order of their ids, and a full page is packed at once.
	busyGone = 1
)

// goneTasks holds what is remembered of removed tasks, so that calls about them can be
// repeated and their keys stay taken for a while.
type goneTasks struct {
	table record.Table[record.Gone] // by id
	keys  *index.Names              // idempotency keys, with the ids
	// keysOfTypes is Machine.keysOfTypes for removed tasks.
	keysOfTypes bool
	forgetting  index.Timeline // by ForgetU
	bytes       int64          // memory of all
	max         int            // bounds the records. Only tests change it
}

func newGoneTasks() goneTasks {
	return goneTasks{table: record.NewTable[record.Gone](record.RestingGone{}, busyGone), max: goneMax}
}

// reset empties what is derived.
func (g *goneTasks) reset() {
	g.keys, g.forgetting, g.bytes = index.NewNames(), index.NewTimeline(), 0
	g.keysOfTypes = false
}

// find returns the record of the task at time u by the lease clock, or nil.
func (g *goneTasks) find(id uint64, u int64) *record.Gone {
	r := g.table.Get(id)
	if r == nil || r.ForgetU <= u {
		return nil
	}
	return r
}

// of returns the record whose key has this name, or nil. It does not check whether its time is
// over.
func (g *goneTasks) of(name string) (id uint64, r *record.Gone) {
	id = g.keys.Get(name, func(id uint64) bool {
		r = g.table.Get(id)
		return r.KeyName() == name
	})
	if id == 0 {
		return 0, nil
	}
	return id, r
}

// named is of, but ignores a record or a key whose time is over. It changes nothing.
func (g *goneTasks) named(name string, now record.Stamp) (id uint64, r *record.Gone) {
	if id, r = g.of(name); r == nil || r.ForgetU <= now.U || windowOver(r.KeyUntil, now.T) {
		return 0, nil
	}
	return id, r
}

// namedOrForget is named for Apply. It also forgets a record whose time is over, or only its key,
// so that another task can have the key.
func (g *goneTasks) namedOrForget(name string, now record.Stamp) (id uint64, r *record.Gone) {
	switch id, r = g.of(name); {
	case r == nil:
	case r.ForgetU <= now.U:
		g.forget(id)
		return 0, nil
	case windowOver(r.KeyUntil, now.T):
		g.keys.Remove(name, id)
		return 0, nil
	}
	return id, r
}

// windowOver reports whether a key that is taken until then is free at t; 0 = it is not taken by
// time.
func windowOver(until, t int64) bool { return until != 0 && until <= t }

// add remembers a task that was just removed, and forgets some of the oldest.
func (g *goneTasks) add(id uint64, r *record.Gone, now record.Stamp) {
	g.table.Put(id, r)
	g.include(id, r, now.T)
	g.table.Rest(id)
	for range goneForgottenMax {
		id, due := g.forgetting.Due(now.U)
		if !due && g.table.Len() <= g.max {
			break
		}
		if !due {
			oldest, _ := g.forgetting.First()
			id = oldest.ID
		}
		g.forget(id)
	}
}

// index is include for a saved record. It returns what is wrong with the record, or "".
func (g *goneTasks) index(id uint64, r *record.Gone, t int64) (problem string) {
	if r.Key != "" && !windowOver(r.KeyUntil, t) {
		if _, other := g.of(r.KeyName()); other != nil && !windowOver(other.KeyUntil, t) {
			return "its key is another's"
		}
	}
	g.include(id, r, t)
	return ""
}

// include adds a record to everything derived, at time t by T.
func (g *goneTasks) include(id uint64, r *record.Gone, t int64) {
	if r.Key != "" && !windowOver(r.KeyUntil, t) {
		g.keys.Add(r.KeyName(), id)
		g.keysOfTypes = g.keysOfTypes || r.KeyOfType
	}
	g.forgetting.Add(r.ForgetU, id)
	g.bytes += record.BytesOfGone(r)
}

// exclude undoes include.
func (g *goneTasks) exclude(id uint64, r *record.Gone) {
	if r.Key != "" {
		g.keys.Remove(r.KeyName(), id)
	}
	g.forgetting.Remove(r.ForgetU, id)
	g.bytes -= record.BytesOfGone(r)
}

// excludePacked is exclude for a packed record.
func (g *goneTasks) excludePacked(id uint64, r record.PackedGone) {
	if len(r.Key) > 0 {
		g.keys.Remove(record.KeyName(string(r.Type), string(r.Key), r.KeyOfType), id)
	}
	g.forgetting.Remove(r.ForgetU, id)
	g.bytes -= r.Bytes
}

// forget drops the record of a removed task.
func (g *goneTasks) forget(id uint64) {
	if kept := g.table.Look(id); kept.Record != nil {
		g.exclude(id, kept.Record)
	} else {
		g.excludePacked(id, record.ScanGone(kept.Packed))
	}
	g.table.Remove(id)
}

// forgetDue drops a bounded number of records whose time has come. The bound affects no
// answer, because every lookup checks the time itself.
func (g *goneTasks) forgetDue(u int64) {
	for range goneTickMax {
		id, ok := g.forgetting.Due(u)
		if !ok {
			return
		}
		g.forget(id)
	}
}
