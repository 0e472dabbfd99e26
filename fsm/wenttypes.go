package fsm

import "github.com/claimq/claimq/fsm/sorted"

// wentMax bounds the types that are known although they went, but for those of the entry that
// was applied last. Those that went first are forgotten first.
const wentMax = 1_000

// wentTypes are the types that have neither tasks nor settings any more, but rates. A type whose
// tasks are removed as they end comes and goes with each of them: so it keeps what was counted
// of it. Like the rates they are no part of the state.
type wentTypes struct {
	byName  sorted.Map[string, *typeState]
	inOrder sorted.Map[uint64, *typeState] // by when they went
	count   uint64                         // how many ever went
}

func newWentTypes() wentTypes {
	return wentTypes{byName: sorted.NewMap[string, *typeState](), inOrder: sorted.NewMap[uint64, *typeState]()}
}

// add adds a type that goes.
func (w *wentTypes) add(ts *typeState) {
	w.count++
	ts.went = w.count
	w.byName.Set(ts.Name(), ts)
	w.inOrder.Load(ts.went, ts)
}

// take removes the type and returns it, nil if it is not there.
func (w *wentTypes) take(name string) *typeState {
	ts, ok := w.byName.Delete(name)
	if !ok {
		return nil
	}
	w.inOrder.Delete(ts.went)
	return ts
}

// forget forgets those that are too many, and those in front that have no rates at t any more.
func (w *wentTypes) forget(t int64) {
	for {
		_, ts, ok := w.inOrder.GetAt(0)
		if !ok || w.inOrder.Len() <= wentMax && !ts.rates.none(t) {
			return
		}
		w.take(ts.Name())
	}
}

// named returns the type if it has rates at t, else nil.
func (w *wentTypes) named(name string, t int64) *typeState {
	if ts, ok := w.byName.Get(name); ok && !ts.rates.none(t) {
		return ts
	}
	return nil
}

// from returns the types that have rates at t, sorted by name, from the first one whose name is
// not below that one.
func (w *wentTypes) from(name string, t int64) (types []*typeState) {
	w.byName.Ascend(name, func(_ string, ts *typeState) bool {
		if !ts.rates.none(t) {
			types = append(types, ts)
		}
		return true
	})
	return types
}
