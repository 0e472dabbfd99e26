package cluster

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/fsm"
)

// Timers come out when they are due, the earliest first, whatever was pushed
// back or swept in between.
func TestLeaseTimers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		timers := newLeaseTimers()
		var model []int64
		next := uint64(0)
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				var leases []fsm.Lease
				for _, end := range rapid.SliceOfN(rapid.Int64Range(0, 1000), 0, 10).Draw(t, "ends") {
					next++
					leases = append(leases, fsm.Lease{TaskID: next, Token: next, EndU: end})
					model = append(model, end)
				}
				timers.add(leases)
			case 1:
				end := rapid.Int64Range(0, 1000).Draw(t, "end")
				next++
				timers.push([]leaseTimer{{due: end, taskID: next, token: next}})
				model = append(model, end)
			case 2:
				even := func(due int64) bool { return due%2 == 0 }
				timers.sweep(func(all []leaseTimer) []leaseTimer {
					return slices.DeleteFunc(all, func(t leaseTimer) bool { return !even(t.due) })
				})
				model = slices.DeleteFunc(model, func(due int64) bool { return !even(due) })
			case 3:
				now := rapid.Int64Range(0, 1000).Draw(t, "now")
				limit := rapid.IntRange(1, 20).Draw(t, "limit")
				slices.Sort(model)
				want := []int64{}
				for len(want) < limit && len(model) > 0 && model[0] <= now {
					want, model = append(want, model[0]), model[1:]
				}
				got := []int64{}
				for _, timer := range timers.pop(now, limit) {
					got = append(got, timer.due)
				}
				if !slices.Equal(got, want) {
					t.Fatalf("due at %d, at most %d: %v, want %v", now, limit, got, want)
				}
			}
			due, ok := timers.next()
			if ok != (len(model) > 0) || ok && due != slices.Min(model) {
				t.Fatalf("the next is %d, %v; of %v", due, ok, model)
			}
		}
	})
}

// Waits for an index end lowest first, also when others gave up in between.
func TestIndexHeap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var h indexHeap
		var waiting []*indexWaiter
		for _, index := range rapid.SliceOfN(rapid.Uint64Range(0, 50), 1, 60).Draw(t, "indexes") {
			w := &indexWaiter{index: index}
			h.push(w)
			waiting = append(waiting, w)
			if rapid.IntRange(0, 2).Draw(t, "gives up") == 0 {
				i := rapid.IntRange(0, len(waiting)-1).Draw(t, "who")
				h.remove(waiting[i])
				h.remove(waiting[i]) // it may have been woken meanwhile
				waiting = slices.Delete(waiting, i, i+1)
			}
		}
		var got, want []uint64
		for _, w := range waiting {
			want = append(want, w.index)
		}
		slices.Sort(want)
		for len(h) > 0 {
			got = append(got, h.pop().index)
		}
		if !slices.Equal(got, want) {
			t.Errorf("woken %v, want %v", got, want)
		}
	})
}
