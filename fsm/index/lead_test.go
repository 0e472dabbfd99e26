package index

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/internal/proof"
)

// TestLeads holds the order of shares against a list: most come behind all others, some anywhere,
// and leave from anywhere. What they leave behind takes no more room than they do.
func TestLeads(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(rt *rapid.T) {
		var (
			order leads
			out   []*stock
			in    []lead
			tag   = ^uint64(0) - 5 // they wrap
			since uint64
		)
		for range rapid.IntRange(1, 300).Draw(rt, "shares") {
			s := &stock{}
			order.add(s)
			out = append(out, s)
		}
		for range rapid.IntRange(1, 600).Draw(rt, "steps") {
			if len(in) > 0 && rapid.IntRange(0, 5).Draw(rt, "leaves") == 0 {
				at := rapid.IntRange(0, len(in)-1).Draw(rt, "which")
				out = append(out, in[at].of)
				order.leave(in[at].of)
				in = slices.Delete(in, at, at+1)
			} else {
				since++
				tag += rapid.Uint64Range(0, 1).Draw(rt, "further")
				to := lead{priority: rapid.SampledFrom([]uint64{5, 5, 5, 5, 4}).Draw(rt, "priority"), tag: tag, since: since}
				if rapid.IntRange(0, 4).Draw(rt, "anywhere") == 0 {
					to.tag -= rapid.Uint64Range(0, 9).Draw(rt, "before")
				}
				if len(out) > 0 && rapid.Bool().Draw(rt, "new") {
					to.of, out = out[len(out)-1], out[:len(out)-1]
				} else if len(in) > 0 { // the first one has its turn
					first, _ := order.first()
					at := slices.IndexFunc(in, func(l lead) bool { return l.of == first })
					to.of = first
					in = slices.Delete(in, at, at+1)
				} else {
					continue
				}
				order.put(to)
				in = append(in, to)
			}
			if order.taken == 0 && len(order.ring) > 0 { // places wrap, too
				order.head, order.end = ^uint32(0)-2, ^uint32(0)-2
			}
			if len(in) == 0 {
				continue
			}
			want := slices.MinFunc(in, func(a, b lead) int { return int(b.before(&a)) - int(a.before(&b)) })
			if s, got := order.first(); s != want.of || got != want {
				rt.Fatalf("%+v is first, want %+v", got, want)
			}
			room := 0
			if len(order.rounds) > 0 {
				room = len(order.rounds[0])
			}
			if order.taken+order.slots != len(in) || len(order.ring) > max(lineKept, 8*order.taken) || room > max(tournamentKept, roundOf*order.slots) {
				rt.Fatalf("%d places in line of %d, and %d loose of %d, for %d shares", order.taken, len(order.ring), order.slots, room, len(in))
			}
			if order.taken > 0 && (order.at(order.head).of == nil || order.at(order.end-1).of == nil) {
				rt.Fatalf("the line of %d begins or ends with a gap", order.taken)
			}
		}
		for _, its := range in {
			order.remove(its.of)
			if len(order.ring) > max(lineKept, 8*order.taken) {
				rt.Fatalf("room for %d in line is left of %d", len(order.ring), order.taken)
			}
		}
		for _, s := range out {
			order.remove(s)
		}
		if order.count != 0 || order.taken != 0 || order.slots != 0 {
			rt.Fatalf("%d shares are left, %d in line and %d loose", order.count, order.taken, order.slots)
		}
	})
}
