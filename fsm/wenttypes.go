package fsm

import "github.com/claimq/claimq/fsm/sorted"

// wentMax bounds the remembered types that are gone; those of the last entry come on top. The
// oldest are forgotten first.
const wentMax = 1_000

// wentTypes remembers types that have neither tasks nor settings any more but still have rates,
// because a type whose tasks are removed as they end comes and goes with each of them. Like the
// rates they are not part of the state.
type wentTypes struct {
	byName  sorted.Map[string, *typeState]
	inOrder sorted.Map[uint64, *typeState] // in the order of leaving
	count   uint64                         // number of types that ever left
}

func newWentTypes() wentTypes {
	return wentTypes{byName: sorted.NewMap[string, *typeState](), inOrder: sorted.NewMap[uint64, *typeState]()}
}

// add adds a type that leaves.
func (w *wentTypes) add(ts *typeState) {
	w.count++
	ts.went = w.count
	w.byName.Set(ts.Name(), ts)
	w.inOrder.Load(ts.went, ts)
}

// take removes the type and returns it, or nil.
func (w *wentTypes) take(name string) *typeState {
	ts, ok := w.byName.Delete(name)
	if !ok {
		return nil
	}
	w.inOrder.Delete(ts.went)
	return ts
}

// forget drops the oldest types that exceed the bound or have no rates at t.
func (w *wentTypes) forget(t int64) {
	for {
		_, ts, ok := w.inOrder.GetAt(0)
		if !ok || w.inOrder.Len() <= wentMax && !ts.rates.none(t) {
			return
		}
		w.take(ts.Name())
	}
}

// named returns the type if it has rates at t, or nil.
func (w *wentTypes) named(name string, t int64) *typeState {
	if ts, ok := w.byName.Get(name); ok && !ts.rates.none(t) {
		return ts
	}
	return nil
}

// from returns the types that have rates at t in the order of their names, starting at name.
func (w *wentTypes) from(name string, t int64) (types []*typeState) {
	w.byName.Ascend(name, func(_ string, ts *typeState) bool {
		if !ts.rates.none(t) {
			types = append(types, ts)
		}
		return true
	})
	return types
}
