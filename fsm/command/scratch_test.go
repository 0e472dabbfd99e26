package command

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/claimq/claimq/fsm/record"
)

// A command that was decoded into a scratch is the one that was encoded, whatever
// was in the scratch before, and afterwards the scratch holds on to nothing.
func TestScratch_DecodesWhatWasEncoded(t *testing.T) {
	t.Parallel()
	var s Scratch
	tasks := []record.NewTask{{Type: "a", Params: []byte("1")}, {Type: "b", Payload: []byte("2"), Key: "k"}}
	for i, want := range []Command{
		Submit{Tasks: slices.Repeat(tasks, 2)},
		Submit{Tasks: tasks[:1]},
		Submit{Tasks: slices.Repeat(tasks, record.TaskRoomMax)},
		Submit{},
		ClaimNext{WorkerID: "w", Types: []string{"a", "b", "c"}, Limit: 1},
		ClaimNext{WorkerID: "w", Types: []string{"b"}, RequestID: "r"},
		ClaimNext{Types: slices.Repeat([]string{"a"}, record.TaskRoomMax+1)},
		ClaimNext{},
		Complete{Hold: Hold{ID: 1, WorkerID: "w", Token: 2}, Submit: tasks, Claim: &ClaimNext{WorkerID: "v", Types: []string{"z"}}},
		Complete{Hold: Hold{ID: 1}},
	} {
		c, size, err := decodeCommand(AppendCommand(nil, want), &s)
		if err != nil {
			t.Fatal(err)
		}
		var got Command
		switch c := c.(type) {
		case *Submit:
			got = *c
		case *ClaimNext:
			got = *c
		case *Complete:
			got = *c
		}
		if !reflect.DeepEqual(want, got) || size != len(AppendCommand(nil, want)) {
			t.Errorf("command %d is decoded as %+v, want %+v", i, got, want)
		}
		s.Reset()
		if left := (Scratch{submit: s.submit, claim: s.claim, complete: s.complete, then: s.then}); !reflect.DeepEqual(left, Scratch{}) {
			t.Errorf("after Reset there is left %+v", left)
		}
		if i := slices.IndexFunc(s.room.Tasks, func(n record.NewTask) bool { return n.Type != "" || n.Params != nil }); i >= 0 {
			t.Errorf("task %d of the scratch is kept", i)
		}
	}
	if len(s.room.Tasks) > record.TaskRoomMax {
		t.Errorf("room for %d tasks is kept", len(s.room.Tasks))
	}
}

// Names stay correct when many share a place.
func TestNames_Of(t *testing.T) { // not parallel: it counts allocations
	var n record.NameCache
	for i := range 4 * len(n) {
		for _, name := range []string{fmt.Sprint("worker-", i), "", "x", "mail"} {
			if got := n.Of([]byte(name)); got != name {
				t.Fatalf("%q became %q", name, got)
			}
		}
	}
	mail := []byte("mail")
	if got := testing.AllocsPerRun(10, func() { n.Of(mail) }); got != 0 {
		t.Errorf("a known name allocates %v times", got)
	}
}

// Lists of types stay correct whatever the cache held before and however long they are.
// Reading a cached list allocates nothing.
func TestTypeLists(t *testing.T) { // not parallel: it counts allocations
	var s Scratch
	decode := func(types []string) *ClaimNext {
		c, _, err := decodeCommand(AppendCommand(nil, ClaimNext{WorkerID: "w", Types: types, Limit: 1}), &s)
		if err != nil {
			t.Fatal(err)
		}
		return c.(*ClaimNext)
	}
	var lists [][]string
	for i := range 50 {
		list := []string{"mail"}
		for j := range i {
			list = append(list, fmt.Sprint("type-", i*j))
		}
		lists = append(lists, list, list[:1+i/2], []string{fmt.Sprint(i)}, []string{"", fmt.Sprint(i)})
	}
	lists = append(lists, slices.Repeat([]string{"mail"}, typeListMax))
	for range 3 {
		for _, list := range lists {
			for range 2 {
				if got := decode(list); !slices.Equal(got.Types, list) || got.WorkerID != "w" || got.Limit != 1 {
					t.Fatalf("%q became %+v", list, got)
				}
				s.Reset()
			}
		}
	}
	for i := range s.lists {
		if n := len(s.lists[i].encoded); n > typeListMax {
			t.Errorf("a list of %d bytes is kept", n)
		}
	}
	var ops []Command
	for i, list := range lists {
		ops = append(ops, ClaimNext{Types: list, Limit: 1}, ClaimNext{Types: list, Limit: 2}, ClaimNext{Types: []string{fmt.Sprint(i)}, Limit: 3})
		if i%7 == 0 {
			ops = append(ops, ClaimNext{Limit: 4})
		}
	}
	c, _, err := decodeCommand(AppendCommand(nil, Batch{Ops: ops}), &s)
	if err == nil {
		err = c.(*PackedBatch).Each(func(i int, op Command) error {
			if got := *op.(*ClaimNext); !reflect.DeepEqual(got, ops[i]) {
				t.Errorf("op %d became %+v", i, got)
			}
			if list := op.(*ClaimNext).Types; len(list) > 0 && len(list) < 100 && s.ListOf(list) == nil {
				t.Errorf("op %d: the list is not cached", i)
			}
			return nil
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	known := AppendCommand(nil, ClaimNext{Types: lists[len(lists)-5]})
	if got := testing.AllocsPerRun(10, func() { decodeCommand(known, &s) }); got != 0 {
		t.Errorf("a known list allocates %v times", got)
	}
}
