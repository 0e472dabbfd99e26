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
		tasks := map[*slot]ranks{}
		var all []*slot
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
					c := new(slot)
					tour.add(c)
					all, tasks[c] = append(all, c), noRanks
				}
			case "remove":
				for range min(n, len(all)) {
					at := next(len(all))
					tour.remove(all[at])
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
					tour.put(*c, &its)
					tasks[c] = its
				}
			}
			want := noRanks
			for _, c := range all {
				for o := range orders {
					want[o] = want[o].or(tasks[c][o])
					if got := tour.bySlot(o)[*c]; got != tasks[c][o] {
						rt.Fatalf("slot %d has %v in order %d, want %v", *c, got, o, tasks[c][o])
					}
				}
			}
			if *tour.first() != want {
				rt.Fatalf("first are %v of %d, want %v", tour.top, len(all), want)
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
			if rankOf(highest, p, 1).before(rankOf(highest, higher, 2)) == 1 || rankOf(lowest, higher, 1).before(rankOf(lowest, p, 2)) == 1 {
				t.Errorf("priorities %d and %d are out of order", p, higher)
			}
		}
		for o := range orders {
			low, high := rankOf(o, p, 1), rankOf(o, p, 1<<53-1)
			if o == newest {
				low, high = high, low
			}
			if low.before(high) != 1 || high.before(low) != 0 || low.or(high) != low || high.or(low) != low || high.before(noRank) != 1 {
				t.Errorf("ids are out of order in order %d at priority %d", o, p)
			}
		}
	}
}

// entrant is in a ranking.
type entrant struct {
	slot
	its ranks
}

func (e *entrant) rank(o order) rank { return e.its[o] }

// TestRanking holds a ranking against a plain search: some come, go and get other tasks, many and
// few, and some orders are not asked for long.
func TestRanking(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(rt *rapid.T) {
		r := newRanking()
		var all []*entrant
		random := uint64(rapid.Uint32().Draw(rt, "seed"))
		next := func(below int) int {
			random = random*6364136223846793005 + 1442695040888963407
			return int(random >> 33 % uint64(below))
		}
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			n := rapid.IntRange(1, 200).Draw(rt, "n")
			switch rapid.SampledFrom([]string{"add", "remove", "change", "change few"}).Draw(rt, "do") {
			case "add":
				for range n {
					e := &entrant{its: noRanks}
					r.add(e)
					all = append(all, e)
				}
			case "remove":
				for range min(n, len(all)) {
					at := next(len(all))
					r.remove(all[at])
					all = append(all[:at], all[at+1:]...)
				}
			case "change few":
				n = min(n, 3)
				fallthrough
			case "change":
				for range min(n, 4*len(all)) {
					e := all[next(len(all))]
					e.its = noRanks
					if id := uint64(next(1000)); id > 99 {
						for o := range orders {
							e.its[o] = rankOf(o, int32(next(5)-2), id)
						}
					}
					r.change(e.slot)
				}
			}
			for o := range orders {
				if next(3) == 0 {
					continue // do not ask this time
				}
				want := noRank
				for at, e := range all {
					want = want.or(e.its[o])
					if r.all[e.slot] != e {
						rt.Fatalf("%d is not at slot %d", at, e.slot)
					}
					if len(all) > 1 && r.bySlot(o)[e.slot] != e.its[o] {
						rt.Fatalf("slot %d has %v in order %d, want %v", e.slot, r.bySlot(o)[e.slot], o, e.its[o])
					}
				}
				if got := r.rank(o); got != want {
					rt.Fatalf("first of %d is %v in order %d, want %v", len(all), got, o, want)
				}
				if want != noRank && r.winner(o).(*entrant).its[o] != want {
					rt.Fatalf("the winner of order %d has %v, want %v", o, r.winner(o).(*entrant).its[o], want)
				}
				if p := r.orders[o]; len(p.rounds) > 0 && len(p.rounds[0]) > max(tournamentKept, 4*len(all)+roundOf) {
					rt.Fatalf("room for %d is kept by %d", len(p.rounds[0]), len(all))
				}
			}
		}
	})
}
