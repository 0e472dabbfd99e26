package fsm

import (
	"fmt"
	"slices"
	"testing"

	"github.com/claimq/claimq/fsm/record"
)

// Lists of types are what they were made of, whatever was in their place before and
// however long they are, and a known one allocates nothing.
func TestTypeLists(t *testing.T) { // not parallel: it counts allocations
	var s scratch
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
				s.reset()
			}
		}
	}
	for i := range s.lists {
		if n := len(s.lists[i].encoded); n > typeListMax {
			t.Errorf("a list of %d bytes is kept", n)
		}
	}
	known := AppendCommand(nil, ClaimNext{Types: lists[len(lists)-5]})
	if got := testing.AllocsPerRun(10, func() { decodeCommand(known, &s) }); got != 0 {
		t.Errorf("a known list allocates %v times", got)
	}
}

// A list of which the server has forgotten types, and got to know others, since it
// came last.
func TestTypeLists_Located(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	types := []string{"a", "b", "c"}
	claim := AppendEntry(nil, h.stamp, ClaimNext{WorkerID: "w1", Types: types, Limit: 1})
	next := func() string {
		claims := mustApply(t, h.m, h.m.Index()+1, claim).Results[0].Claims
		if len(claims) == 0 {
			return ""
		}
		id := claims[0].Task.ID
		h.do(Complete{Hold: Hold{ID: id, WorkerID: "w1"}})
		h.do(Delete{ID: id})
		return claims[0].Task.Type
	}
	for i, want := range []string{"", "b", "a", "", "c", "b", ""} {
		h.submit(1, record.NewTask{Type: fmt.Sprint("other", i), Payload: []byte("p")})
		if want != "" {
			h.submit(1, record.NewTask{Type: want, Payload: []byte("p")})
		}
		if got := next(); got != want {
			t.Errorf("claim %d took one of type %q, want %q", i, got, want)
		}
	}
}
