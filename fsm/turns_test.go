package fsm

import (
	"fmt"
	"slices"
	"testing"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// TestTurns_GoOn ensures that neither a restore nor a refused batch with a claim, before each
// claim, changes whose turn it is.
func TestTurns_GoOn(t *testing.T) {
	t.Parallel()
	next := command.ClaimNext{WorkerID: "worker-1", Types: []string{"mail"}, Limit: 1}
	for name, disturb := range map[string]func(h *measured){
		"restored": func(h *measured) { h.m = restore(h.t, snapshotOf(h.t, h.m)) },
		"refused batch": func(h *measured) {
			batch := h.apply(command.Batch{Atomic: true, Ops: []command.Command{next, next, command.Delete{ID: 1000}}})
			if batch.Code == "" {
				h.t.Fatal("the batch was not refused")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, keys := newMeasured(t), []string{"ann", "ben", "cy"}
			h.apply(command.SetLevel{Level: record.FeatureLevel})
			h.apply(command.SetType{Type: "mail", Set: record.TypeFair, Settings: record.TypeSettings{Fair: true}})
			for _, key := range keys {
				h.apply(command.Submit{Tasks: slices.Repeat([]record.NewTask{{Type: "mail", Params: []byte("1"), ShareKey: key}}, 6)})
			}
			var got, want []string
			for i := range 18 {
				disturb(h)
				mustCheck(t, h.m)
				for _, c := range h.apply(next).Claims {
					got = append(got, c.Task.Opts().ShareKey)
				}
				want = append(want, keys[i%len(keys)])
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("claimed are %v, want %v", got, want)
			}
		})
	}
}

// TestTurns_Reopened ensures that a share that was at its limit while others had many turns is
// not owed these: it has one in turn with the others.
func TestTurns_Reopened(t *testing.T) {
	t.Parallel()
	h := newMeasured(t)
	h.apply(command.SetLevel{Level: record.FeatureLevel})
	h.apply(command.SetType{Type: "mail", Set: record.TypeFieldsAll, Settings: record.TypeSettings{Fair: true, MaxClaimedPerKey: 1}})
	for _, key := range []string{"ann", "ben"} {
		h.apply(command.Submit{Tasks: slices.Repeat([]record.NewTask{{Type: "mail", Params: []byte("1"), ShareKey: key}}, 20)})
	}
	claim := func() *Claim {
		return &h.apply(command.ClaimNext{WorkerID: "worker-1", Types: []string{"mail"}, Limit: 1}).Claims[0]
	}
	held := claim()
	for range 9 {
		h.apply(command.Complete{Hold: h.holdOf(claim())})
	}
	h.apply(command.Complete{Hold: h.holdOf(held)})
	var got []string
	for range 6 {
		c := claim()
		got = append(got, c.Task.Opts().ShareKey)
		h.apply(command.Complete{Hold: h.holdOf(c)})
		mustCheck(t, h.m)
	}
	if want := []string{"ann", "ben", "ann", "ben", "ann", "ben"}; !slices.Equal(got, want) {
		t.Errorf("claimed are %v, want %v", got, want)
	}
}

// TestTurns_Weights ensures that a share with three times the weight gets three times the claims,
// and that a new weight holds at once for the tasks that wait.
func TestTurns_Weights(t *testing.T) {
	t.Parallel()
	h := newMeasured(t)
	h.apply(command.SetLevel{Level: record.FeatureLevel})
	h.apply(command.SetType{Type: "mail", Set: record.TypeFair, Settings: record.TypeSettings{Fair: true}})
	for _, key := range []string{"ann", "ben"} {
		h.apply(command.Submit{Tasks: slices.Repeat([]record.NewTask{{Type: "mail", Params: []byte("1"), ShareKey: key}}, 40)})
	}
	weigh := func(key string, weight int32) {
		h.m.types.SetWeight(&h.m.types.named("mail").Type, key, weight, &h.m.turns)
	}
	claims := func(n int) (ofAnn int) {
		for range n {
			c := h.apply(command.ClaimNext{WorkerID: "worker-1", Types: []string{"mail"}, Limit: 1}).Claims[0]
			if c.Task.Opts().ShareKey == "ann" {
				ofAnn++
			}
		}
		return ofAnn
	}
	weigh("ann", 300)
	if got := claims(16); got < 11 || got > 13 {
		t.Errorf("of 16 claims %d are of three times the weight", got)
	}
	weigh("ann", 1)
	claims(3) // one of them is ann's
	weigh("ann", 100)
	if got := claims(10); got < 4 || got > 6 {
		t.Errorf("of 10 claims %d are of a share that has the same weight again", got)
	}
}
