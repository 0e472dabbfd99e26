package index

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/internal/proof"
)

// TestTournament holds a tournament against a plain search: contenders come, go and
// get other tasks, many and few.
func TestTournament(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(rt *rapid.T) {
		tour := newTournament()
		if lazy := rapid.Bool().Draw(rt, "lazy"); lazy {
			tour = newLazyTournament()
		}
		tasks := map[*contender]ranks{}
		var all []*contender
		random := uint64(rapid.Uint32().Draw(rt, "seed"))
		next := func(below int) int {
			random = random*6364136223846793005 + 1442695040888963407
			return int(random >> 33 % uint64(below))
		}
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			n := rapid.IntRange(1, 200).Draw(rt, "n")
			switch rapid.SampledFrom([]string{"add", "remove", "put"}).Draw(rt, "do") {
			case "add":
				for range n {
					c := &contender{}
					tour.Add(c)
					all, tasks[c] = append(all, c), noRanks
				}
			case "remove":
				for range min(n, len(all)) {
					at := next(len(all))
					tour.Remove(all[at])
					delete(tasks, all[at])
					all = append(all[:at], all[at+1:]...)
				}
			case "put":
				for range min(n, 4*len(all)) {
					c, its := all[next(len(all))], noRanks
					if id := uint64(next(1000)); id > 99 {
						for o := range orders {
							its[o] = rankOf(o, int32(next(5)-2), id)
						}
					}
					tour.Put(c, &its)
					tasks[c] = its
				}
			}
			want := noRanks
			for _, c := range all {
				for o := range orders {
					want[o] = want[o].or(tasks[c][o])
					if got := tour.BySlot(o)[c.slot]; got != tasks[c][o] {
						rt.Fatalf("slot %d has %v in order %d, want %v", c.slot, got, o, tasks[c][o])
					}
				}
			}
			if tour.Any() != (want != noRanks) {
				rt.Fatalf("one has a task: %v of %d contenders", tour.Any(), len(all))
			}
			if tour.unplayed == nil && tour.top != want {
				rt.Fatalf("first are %v of %d, want %v", tour.top, len(all), want)
			}
			for o := range orders {
				if tour.unplayed != nil && next(3) == 0 {
					continue // do not ask this time
				}
				if tour.First(o); tour.top[o] != want[o] {
					rt.Fatalf("first of %d is %v in order %d, want %v", len(all), tour.top[o], o, want[o])
				}
				if want[o] != noRank && tasks[tour.Winner(o)][o] != want[o] {
					rt.Fatalf("the winner of order %d has %v, want %v", o, tasks[tour.Winner(o)][o], want[o])
				}
			}
			if len(tour.rounds) > 0 && len(tour.rounds[0][0]) > max(tournamentKept, 4*len(all)+roundOf) {
				rt.Fatalf("room for %d is kept by %d", len(tour.rounds[0][0]), len(all))
			}
		}
	})
}

// ranks are in the order of priorities and ids, the whole range of both.
func TestRank(t *testing.T) {
	t.Parallel()
	priorities := []int32{-1 << 31, -1, 0, 1, 1<<31 - 1}
	for at, p := range priorities {
		if got := rankOf(lowest, p, 7).priority(); got != p {
			t.Errorf("priority %d became %d", p, got)
		}
		for _, higher := range priorities[at+1:] {
			if rankOf(highest, p, 1).Before(rankOf(highest, higher, 2)) == 1 || rankOf(lowest, higher, 1).Before(rankOf(lowest, p, 2)) == 1 {
				t.Errorf("priorities %d and %d are out of order", p, higher)
			}
		}
		for o := range orders {
			low, high := rankOf(o, p, 1), rankOf(o, p, 1<<53-1)
			if o == newest {
				low, high = high, low
			}
			if low.Before(high) != 1 || high.Before(low) != 0 || low.or(high) != low || high.or(low) != low || high.Before(noRank) != 1 {
				t.Errorf("ids are out of order in order %d at priority %d", o, p)
			}
		}
	}
}
