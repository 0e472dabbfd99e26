package fsm

import (
	"iter"
	"slices"
	"strings"

	"github.com/claimq/claimq/fsm/index"
	"github.com/claimq/claimq/fsm/record"
)

// taskTypes holds the task types: their settings and what is derived of their tasks.
// index.Type.Of is a typeState.
type taskTypes struct {
	index.Types
	settings []*record.TaskType // sorted by name, at most record.TaskTypesMax; a snapshot has copies
	retired  retiredTypes
	moving   []*record.TaskType // those with a running move, by name
}

// reset empties what is derived.
func (y *taskTypes) reset() {
	y.Reset()
	y.retired, y.moving = newRetiredTypes(), nil
}

// typeState holds what is derived of a task type while it has tasks or settings, or still has
// rates.
type typeState struct {
	index.Type
	tasks   int64                             // of any status
	counts  [record.StatusCancelled + 1]int64 // by Status
	held    index.Claims                      // its claims
	rates   typeRates
	history *record.History // nil if there is no room for it
	retired uint64          // its number in retiredTypes, while it is there
}

// named returns the type, or nil if it has neither tasks nor settings.
func (y *taskTypes) named(name string) *typeState {
	if ts := y.Named(name); ts != nil {
		return ts.Of.(*typeState)
	}
	return nil
}

// shown is named, but includes a retired type that has rates at t.
func (y *taskTypes) shown(name string, t int64) *typeState {
	if ts := y.named(name); ts != nil {
		return ts
	}
	return y.retired.named(name, t)
}

// from yields the types with tasks or settings in the order of their names, starting at
// name.
func (y *taskTypes) from(name string) iter.Seq[*typeState] {
	return func(yield func(*typeState) bool) {
		for ts := range y.From(name) {
			if !yield(ts.Of.(*typeState)) {
				return
			}
		}
	}
}

// shownFrom is from, but includes retired types that have rates at t.
func (y *taskTypes) shownFrom(name string, t int64) iter.Seq[*typeState] {
	return func(yield func(*typeState) bool) {
		retired := y.retired.from(name, t)
		for ts := range y.from(name) {
			for len(retired) > 0 && retired[0].Name() < ts.Name() {
				if !yield(retired[0]) {
					return
				}
				retired = retired[1:]
			}
			if !yield(ts) {
				return
			}
		}
		for _, ts := range retired {
			if !yield(ts) {
				return
			}
		}
	}
}

// settingsOf returns the settings of the type, or the zero value. They are read-only.
func (y *taskTypes) settingsOf(name string) *record.TypeSettings {
	ts := y.named(name)
	if ts == nil || ts.Record() == nil {
		return &noSettings
	}
	return &ts.Record().Settings
}

// find returns the index of the type's record, or where to insert it.
func (y *taskTypes) find(name string) (at int, known bool) {
	return slices.BinarySearchFunc(y.settings, name, func(r *record.TaskType, name string) int {
		return strings.Compare(r.Name, name)
	})
}

// findMoving computes moving again. It is called when a move starts or ends.
func (y *taskTypes) findMoving() {
	y.moving = nil
	for _, r := range y.settings {
		if r.Moving() {
			y.moving = append(y.moving, r)
		}
	}
}

// nextMove returns the type whose running move is due first, or nil.
func (y *taskTypes) nextMove() (first *record.TaskType) {
	for _, r := range y.moving {
		if first == nil || r.Move.NextAt < first.Move.NextAt {
			first = r
		}
	}
	return first
}

// NameOfType returns the name as a string. If the type exists, it is the one that its tasks
// share.
func (y *taskTypes) NameOfType(name []byte) string { return y.NameOf(name) }

// noSettings is returned by settingsOf for most types. It is never changed.
var noSettings record.TypeSettings

// retiredMax bounds the retired types; those of the last entry come on top. The oldest are
// forgotten first.
const retiredMax = 1_000

// retiredTypes remembers types that have neither tasks nor settings any more but still have rates,
// because a type whose tasks are removed as they end comes and goes with each of them. Like the
// rates, they are not part of the state.
type retiredTypes struct {
	byName  index.Map[string, *typeState]
	inOrder index.Map[uint64, *typeState] // in the order of leaving
	count   uint64                        // number of types ever added
}

func newRetiredTypes() retiredTypes {
	return retiredTypes{byName: index.NewMap[string, *typeState](), inOrder: index.NewMap[uint64, *typeState]()}
}

// add adds a type that has just lost its last task or setting.
func (w *retiredTypes) add(ts *typeState) {
	w.count++
	ts.retired = w.count
	w.byName.Set(ts.Name(), ts)
	w.inOrder.Load(ts.retired, ts)
}

// take removes the type and returns it, or nil if it is not there.
func (w *retiredTypes) take(name string) *typeState {
	ts, ok := w.byName.Delete(name)
	if !ok {
		return nil
	}
	w.inOrder.Delete(ts.retired)
	return ts
}

// forget drops the oldest types that exceed the bound or have no rates at t.
func (w *retiredTypes) forget(t int64) {
	for {
		_, ts, ok := w.inOrder.GetAt(0)
		if !ok || w.inOrder.Len() <= retiredMax && !ts.rates.none(t) {
			return
		}
		w.take(ts.Name())
	}
}

// named returns the type if it has rates at t, or nil.
func (w *retiredTypes) named(name string, t int64) *typeState {
	if ts, ok := w.byName.Get(name); ok && !ts.rates.none(t) {
		return ts
	}
	return nil
}

// from returns the types that have rates at t in the order of their names, starting at name.
func (w *retiredTypes) from(name string, t int64) (types []*typeState) {
	w.byName.Ascend(name, func(_ string, ts *typeState) bool {
		if !ts.rates.none(t) {
			types = append(types, ts)
		}
		return true
	})
	return types
}

// turns holds the saved tags and clocks of the shares of fair types. It implements index.Turns.
type turns struct {
	table record.Table[record.Turn] // by number
}

// Begin adds a turn and returns its number.
func (u *turns) Begin(t record.Turn) (number uint64) {
	last, _ := u.table.Last()
	u.table.Put(last+1, &t)
	return last + 1
}

// Set changes the value of a turn.
func (u *turns) Set(number, value uint64) { u.table.Edit(number).Value = value }

// Move changes the value of a turn and puts it behind all others.
func (u *turns) Move(number, value uint64) uint64 {
	last, _ := u.table.Last()
	t := u.table.Edit(number)
	t.Value = value
	u.table.Remove(number)
	u.table.Put(last+1, t)
	return last + 1
}

// End removes a turn.
func (u *turns) End(number uint64) { u.table.Remove(number) }

// bytes estimates the memory of the turns.
func (u *turns) bytes() int64 {
	saved := u.table.Len()
	return int64(saved)*record.TurnBytes + int64(saved+u.table.Gaps())*record.TurnPlaceBytes
}

// shares holds the saved parts of shares: the settings of some, and the buckets of rate limits
// that are not full.
type shares struct {
	table record.Table[record.Share] // by number
	set   int                        // how many have settings
}

// bytes estimates the memory of all.
func (s *shares) bytes() int64 {
	return int64(s.table.Len())*record.ShareRecordBytes + int64(s.table.Gaps())*record.PlaceBytes
}

// edit changes the saved part of a share, which begins or ceases to be saved if needed. The type
// must be arranged afterwards.
func (s *shares) edit(ts *index.Type, key string, change func(*record.Share)) {
	number, was := ts.SavedShare(key)
	var of *record.Share
	switch {
	case was == nil:
		last, _ := s.table.Last()
		number, of = last+1, &record.Share{Type: ts.Name(), Key: key}
	case was.Settings != (record.ShareSettings{}):
		s.set--
		fallthrough
	default:
		of = s.table.Edit(number)
	}
	change(of)
	if of.Settings != (record.ShareSettings{}) {
		s.set++
	}
	switch {
	case of.IsNothing():
		s.table.Remove(number)
		number, of = 0, nil
	case was == nil:
		s.table.Put(number, of)
	}
	ts.SaveShare(key, number, of)
}

// spend takes one claim out of the bucket of the share, if it has a rate limit.
func (s *shares) spend(ts *index.Type, key string, t int64) {
	if rate := ts.ShareRate(key); rate > 0 {
		s.edit(ts, key, func(of *record.Share) { of.Spend(rate, t) })
	}
}

// setRates adapts the buckets of the type's shares without a rate limit of their own, at time t by
// T, when the limit per share key changes from was to is.
func (s *shares) setRates(ts *index.Type, was, is, t int64) {
	if was == is {
		return
	}
	for _, number := range s.table.IDs() {
		if of := s.table.Get(number); of.Type == ts.Name() && of.Settings.RateLimit == 0 {
			s.edit(ts, of.Key, func(of *record.Share) { of.SetRate(was, is, t) })
		}
	}
}
