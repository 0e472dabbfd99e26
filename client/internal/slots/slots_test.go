package slots

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/internal/proof"
)

// However slots are taken and given back, none is used twice or lost.
func TestSlots(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(t *rapid.T) {
		limits := map[string]int{"a": 0, "b": rapid.IntRange(1, 4).Draw(t, "b"), "c": rapid.IntRange(1, 9).Draw(t, "c")}
		concurrency := rapid.IntRange(1, 8).Draw(t, "concurrency")
		s := New(concurrency, limits)
		var tasks []string // held tasks
		var rooms []Room   // of claims under way
		check := func() {
			most := map[string]int{}
			all := len(tasks)
			for _, name := range tasks {
				most[name]++
			}
			for _, r := range rooms {
				all += r.N
				for _, name := range r.Types {
					most[name] += r.N // if all tasks that it gets were of the type
				}
			}
			if all+s.free != concurrency {
				t.Fatalf("%d of %d slots used, %d free", all, concurrency, s.free)
			}
			for name, n := range limits {
				if limited := s.byName[name]; limited != nil && most[name]+limited.free != n {
					t.Fatalf("%d slots of type %s are used, %d free, of %d", most[name], name, limited.free, n)
				} else if (limited != nil) != (n > 0 && n < concurrency) || most[name] > concurrency {
					t.Fatalf("%d slots of type %s are used, of %d", most[name], name, concurrency)
				}
			}
		}
		pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "which") }
		dropTask := func() string {
			i := pick(len(tasks))
			name := tasks[i]
			tasks = append(tasks[:i:i], tasks[i+1:]...)
			return name
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) { check() },
			"take": func(t *rapid.T) {
				if r, ok := s.Take(); ok {
					rooms = append(rooms, r)
				} else if len(rooms) == 0 && len(tasks) < concurrency {
					// Some type must have had room, because type a has no limit.
					t.Fatal("nothing to take")
				}
			},
			"fill": func(t *rapid.T) {
				if len(rooms) == 0 {
					return
				}
				r := &rooms[pick(len(rooms))]
				name := rapid.SampledFrom(s.names).Draw(t, "type")
				before := fmt.Sprint(*r)
				if s.Fill(r, name) {
					tasks = append(tasks, name)
				} else if fmt.Sprint(*r) != before {
					t.Fatal("a slot that was not filled has gone")
				}
			},
			"give back": func(t *rapid.T) {
				if len(rooms) == 0 {
					return
				}
				i := pick(len(rooms))
				s.GiveBack(&rooms[i])
				rooms = append(rooms[:i:i], rooms[i+1:]...)
			},
			"widen": func(t *rapid.T) {
				if len(tasks) == 0 {
					return
				}
				name := dropTask()
				r := s.Widen(name)
				if rapid.Bool().Draw(t, "narrow") {
					check := r.N
					s.Narrow(&r, name)
					if check != 1 || r.N != 0 {
						t.Fatal("it is not the task's slot again")
					}
					tasks = append(tasks, name)
					return
				}
				rooms = append(rooms, r)
			},
			"done": func(t *rapid.T) {
				if len(tasks) == 0 {
					return
				}
				s.Done(dropTask())
			},
		})
	})
}
