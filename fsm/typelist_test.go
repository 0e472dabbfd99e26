package fsm

import (
	"fmt"
	"testing"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// A cached list after types were forgotten and new ones added.
func TestTypeLists_Located(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	types := []string{"a", "b", "c"}
	claim := command.AppendEntry(nil, h.stamp, command.ClaimNext{WorkerID: "w1", Types: types, Limit: 1})
	next := func() string {
		claims := mustApply(t, h.m, h.m.Index()+1, claim).Results[0].Claims
		if len(claims) == 0 {
			return ""
		}
		id := claims[0].Task.ID
		h.do(command.Complete{Hold: command.Hold{ID: id, WorkerID: "w1"}})
		h.do(command.Delete{ID: id})
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
