package lease

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/proof"
)

// Timers come out when they are due, earliest first, whatever was pushed back or swept in
// between.
func TestTimers(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(t *rapid.T) {
		timers := NewTimers()
		var model []int64
		next := uint64(0)
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				var leases []command.Lease
				for _, end := range rapid.SliceOfN(rapid.Int64Range(0, 1000), 0, 10).Draw(t, "ends") {
					next++
					leases = append(leases, command.Lease{TaskID: next, Token: next, EndU: end})
					model = append(model, end)
				}
				timers.Add(leases)
			case 1:
				end := rapid.Int64Range(0, 1000).Draw(t, "end")
				next++
				timers.push([]timer{{due: end, taskID: next, token: next}})
				model = append(model, end)
			case 2:
				even := func(due int64) bool { return due%2 == 0 }
				timers.sweep(func(all []timer) []timer {
					return slices.DeleteFunc(all, func(t timer) bool { return !even(t.due) })
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
			want := Idle
			if len(model) > 0 {
				want = time.Duration(max(slices.Min(model)-500, 0)) * time.Millisecond
			}
			if wait := timers.Wait(500); wait != want {
				t.Fatalf("wait %v at 500, want %v; of %v", wait, want, model)
			}
		}
	})
}

// claimedAt returns a state in which task 1 was claimed at that time of the lease clock,
// and the claim's lease.
func claimedAt(t *rapid.T, u, leaseMS int64) (*fsm.Machine, command.Lease) {
	t.Helper()
	m := fsm.New()
	a, err := m.Apply(1, command.AppendEntry(nil, fsm.Stamp{U: u},
		command.Submit{Tasks: []fsm.NewTask{{Type: "mail", Params: []byte("1")}}},
		command.ClaimNext{WorkerID: "w", Limit: 1, LeaseMS: leaseMS}))
	if err != nil || len(a.Leases) != 1 {
		t.Fatalf("claim: %v, %d leases", err, len(a.Leases))
	}
	return m, a.Leases[0]
}

// A lease does not end before its length in real time has passed since the request was
// sent, even on a leader whose clock is as fast as allowed and with rounding to
// milliseconds; and it ends soon after that.
func TestTimers_neverEarly(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(t *rapid.T) {
		const fast = 2001 // of 2000
		source := &fakeClock{mono: time.Duration(rapid.Int64Range(0, 1e7).Draw(t, "start"))}
		clock := NewClock(source, fsm.Stamp{})
		// Both are rounded to milliseconds, the second one divided by 2000: most of all just below one.
		source.mono += time.Duration(rapid.Int64Range(0, 10).Draw(t, "sent after, ms"))*time.Millisecond +
			rapid.SampledFrom([]time.Duration{0, 1, 500_000, 999_999}).Draw(t, "and ns")
		sent := source.mono
		length := 2000*rapid.Int64Range(0, 43_000).Draw(t, "lease") + rapid.SampledFrom([]int64{100, 1000, 1999, 2000}).Draw(t, "and ms")
		m, lease := claimedAt(t, clock.Now().U, length)
		timers := NewTimers()
		timers.Add([]command.Lease{lease})
		read := func(fn func(*fsm.Machine)) { fn(m) }

		real := time.Duration(length) * time.Millisecond
		source.mono = sent + real/2000*fast // the latest time of the leader when it has passed
		for range 2 {
			if expired, _ := timers.Due(read, clock.Now().U); len(expired) != 0 {
				t.Fatalf("a lease of %d ms is over after %v by the leader's clock", length, source.mono-sent)
			}
		}
		source.mono = sent + real + real/2000 + 10*time.Millisecond
		var over []command.Lease
		for more := true; more && len(over) == 0; {
			over, more = timers.Due(read, clock.Now().U)
		}
		if len(over) != 1 {
			t.Fatalf("a lease of %d ms is not over after %v by the leader's clock", length, source.mono-sent)
		}
	})
}

// After an extend in the log before an expiry the claim has a new end; an expiry that was
// not written is tried again.
func TestTimers_NoteExpired(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(t *rapid.T) {
		m, lease := claimedAt(t, 0, 1000)
		timers := NewTimers()
		timers.Add([]command.Lease{lease})
		read := func(fn func(*fsm.Machine)) { fn(m) }
		timers.Due(read, 1000) // the margin
		expired, _ := timers.Due(read, 2000)
		if len(expired) != 1 {
			t.Fatal("the lease is not over")
		}
		extended := rapid.Bool().Draw(t, "extended")
		if extended {
			if _, err := m.Apply(2, command.AppendEntry(nil, fsm.Stamp{U: 1500}, command.Extend{Hold: command.Hold{ID: 1, WorkerID: "w", Token: lease.Token}})); err != nil {
				t.Fatal(err)
			}
		}
		timers.NoteExpired(expired, 0)
		again, _ := timers.Due(read, 2000)
		if (len(again) == 0) != extended {
			t.Fatalf("extended %v: %d leases are over", extended, len(again))
		}
		if extended {
			if later, _ := timers.Due(read, 3000); len(later) != 1 {
				t.Fatal("the extended lease is never over")
			}
		}
	})
}

// The expiry of one step's claim may change all the steps of its parent: so Due leaves some
// of 20 such claims for the next entry, but loses none. Claims of steps of the same parent
// come together.
func TestTimers_Due_reach(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		parents, claims int // claims: of each
		want            []int
	}{{20, 1, []int{10, 10}}, {1, 900, []int{900}}} {
		timers := NewTimers()
		m, leases := claimSteps(t, test.parents, test.claims)
		timers.Add(leases)
		read := func(fn func(*fsm.Machine)) { fn(m) }
		var got []int
		for {
			expired, more := timers.Due(read, 10_000)
			if !more {
				break
			}
			got = append(got, len(expired))
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%d parents: claims that expired at a time: %v, want %v", test.parents, got, test.want)
		}
	}
}

// claimSteps returns a state with parents of 999 steps each, of which the given number are
// claimed.
func claimSteps(t *testing.T, parents, claims int) (*fsm.Machine, []command.Lease) {
	t.Helper()
	parent := &fsm.NewParent{Steps: make([]fsm.NewStep, 999)}
	for i := range parent.Steps {
		parent.Steps[i] = fsm.NewStep{Name: "s" + strconv.Itoa(i), Task: fsm.NewTask{Type: "step", Params: []byte("1")}}
	}
	commands := []command.Command{command.SetLevel{Level: fsm.FeatureLevel()}}
	for i := range parents {
		commands = append(commands, command.Submit{Tasks: []fsm.NewTask{{Type: "flow", Parent: parent}}})
		for step := range claims {
			commands = append(commands, command.ClaimTask{ID: uint64(1000*i + 2 + step), WorkerID: "w", LeaseMS: 1000})
		}
	}
	m := fsm.New()
	a, err := m.Apply(1, command.AppendEntry(nil, fsm.Stamp{U: 1}, commands...))
	if err != nil || len(a.Leases) != parents*claims {
		t.Fatalf("claim: %v, %d leases", err, len(a.Leases))
	}
	return m, a.Leases
}
