package index

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// Names lead where a map of them leads, whatever comes and goes.
func TestNames(t *testing.T) {
	t.Parallel()
	const ids, steps = 5000, 200_000
	r := rand.New(rand.NewPCG(1, 2))
	n, want := NewNames(), map[string]uint64{}
	nameOf := make([]string, ids+1)
	has := func(name string) func(uint64) bool {
		return func(id uint64) bool { return nameOf[id] == name }
	}
	for step := range steps {
		id := 1 + r.Uint64N(ids)
		adds := r.IntN(10) < 2+6*(step/(steps/8)%2)
		switch name := nameOf[id]; {
		case name == "" && adds:
			nameOf[id] = fmt.Sprint("name-", step)
			n.Add(nameOf[id], id)
			want[nameOf[id]] = id
		case name != "" && !adds:
			n.Remove(name, id)
			delete(want, name)
			nameOf[id] = ""
			if got := n.Get(name, has(name)); got != 0 {
				t.Fatalf("a name that was removed leads to %d", got)
			}
		}
		n.Remove("nobody has it", id)
		if step%(steps/40) == 0 {
			checkNames(t, n, want, has)
		}
	}
	checkNames(t, n, want, has)
	for name, id := range want {
		n.Remove(name, id)
	}
	checkNames(t, n, nil, has)
}

func checkNames(t *testing.T, n *Names, want map[string]uint64, has func(string) func(uint64) bool) {
	t.Helper()
	for name, id := range want {
		if got := n.Get(name, has(name)); got != id {
			t.Fatalf("%q leads to %d, want %d", name, got, id)
		}
	}
	if n.Len() != len(want) {
		t.Fatalf("there are %d names, want %d", n.Len(), len(want))
	}
	places := 0
	for i := range n.parts {
		p := &n.parts[i]
		places += len(p.ids)
		for at, id := range p.ids {
			if id == 0 {
				continue
			}
			for before := p.home(p.hashes[at]); before != at; before = p.next(before) {
				if p.ids[before] == 0 {
					t.Fatalf("part %d: %d stands at %d, and %d before it is free", i, id, at, before)
				}
			}
		}
	}
	if most := 3*len(want) + 12*nameParts; places > most {
		t.Fatalf("%d places for %d names", places, len(want))
	}
}

// Names of one hash are told apart by the records, and each goes by itself.
func TestNames_sameHash(t *testing.T) {
	t.Parallel()
	n := NewNames()
	n.Add("a", 1)
	p, h := n.part("a")
	p.grow()
	p.put(h, 2) // as if another name had the same hash
	n.count++
	one := func(id uint64) func(uint64) bool { return func(of uint64) bool { return of == id } }
	for id := uint64(1); id <= 2; id++ {
		if got := n.Get("a", one(id)); got != id {
			t.Errorf("Get = %d, want %d", got, id)
		}
	}
	if got := n.Get("a", one(3)); got != 0 {
		t.Errorf("Get = %d of a name that no record has", got)
	}
	n.Remove("a", 1)
	if got := n.Get("a", func(uint64) bool { return true }); got != 2 {
		t.Errorf("Get = %d once the first was removed, want 2", got)
	}
}

// A name takes less than 20 bytes, however long it is.
func TestNames_memory(t *testing.T) {
	t.Parallel()
	const names = 300_000
	n := NewNames()
	for id := range uint64(names) {
		n.Add(fmt.Sprint("a name that is rather long ", id), id+1)
	}
	room := 0
	for i := range n.parts {
		room += 4*cap(n.parts[i].hashes) + 8*cap(n.parts[i].ids)
	}
	if room > 20*names {
		t.Errorf("%d names take %d bytes", names, room)
	}
}
