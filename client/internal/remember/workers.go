package remember

// workers are the ids of workers that claims name, each once.
type workers struct {
	ids    []string
	claims []int             // of each, how many name it
	places map[string]uint32 // in ids
	free   []uint32          // places that no claim names
}

// add returns the place of the id, which one claim more names.
func (w *workers) add(id string) uint32 {
	at, ok := w.places[id]
	if !ok {
		at = w.place(id)
	}
	w.claims[at]++
	return at
}

// place gives the id a place.
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

// remove is called when a claim is forgotten that names the id at that place.
func (w *workers) remove(at uint32) {
	if w.claims[at]--; w.claims[at] > 0 {
		return
	}
	delete(w.places, w.ids[at])
	w.ids[at] = ""
	w.free = append(w.free, at)
}
