package remember

// workers holds the ids of the workers in claims, each once.
type workers struct {
	ids    []string
	claims []int             // number of claims per id
	places map[string]uint32 // index in ids
	free   []uint32          // unused indexes
}

// add returns the index of the id and counts one more claim for it.
func (w *workers) add(id string) uint32 {
	at, ok := w.places[id]
	if !ok {
		at = w.place(id)
	}
	w.claims[at]++
	return at
}

// place assigns an index to the id.
func (w *workers) place(id string) (at uint32) {
	if w.places == nil {
		w.places = make(map[string]uint32)
	}
	if last := len(w.free) - 1; last >= 0 {
		at, w.free = w.free[last], w.free[:last]
		w.ids[at] = id
	} else {
		at = uint32(len(w.ids))
		w.ids, w.claims = append(w.ids, id), append(w.claims, 0)
	}
	w.places[id] = at
	return at
}

// remove counts one claim less for the id at that index.
func (w *workers) remove(at uint32) {
	if w.claims[at]--; w.claims[at] > 0 {
		return
	}
	delete(w.places, w.ids[at])
	w.ids[at] = ""
	w.free = append(w.free, at)
}
