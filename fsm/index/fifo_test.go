package index

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/internal/proof"
)

// contains reports whether the id is there.
func (f *fifo) contains(id uint64) bool {
	k := f.below(id)
	return k < f.count && f.at(k) == id
}

// TestFifo holds a fifo, and a copy of it that was made on the way, against a sorted
// slice: ids come in order and out of it, and leave from both ends and the midst.
func TestFifo(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(rt *rapid.T) {
		f, want := &fifo{}, []uint64(nil)
		var copied *fifo
		var wantCopied []uint64
		var absent []uint64 // ids that were passed by, or left
		next := uint64(1)
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			n := rapid.IntRange(1, 150).Draw(rt, "n")
			pick := func(i, of int) int { return int(uint64(i)*7919%uint64(of)+uint64(n)) % of }
			switch rapid.SampledFrom([]string{"append", "append", "first", "last", "midst", "return", "copy"}).Draw(rt, "do") {
			case "append":
				for range n {
					f.add(next)
					want = append(want, next)
					absent = append(absent, next+1)
					next += 2
				}
			case "first":
				for range min(n, len(want)) {
					f.remove(want[0])
					absent, want = append(absent, want[0]), want[1:]
				}
			case "last":
				for range min(n, len(want)) {
					last := len(want) - 1
					f.remove(want[last])
					absent, want = append(absent, want[last]), want[:last]
				}
			case "midst":
				for i := range min(n/10, len(want)) {
					at := pick(i, len(want))
					f.remove(want[at])
					absent, want = append(absent, want[at]), slices.Delete(slices.Clone(want), at, at+1)
				}
			case "return":
				for i := range min(n/3, len(absent)) {
					which := pick(i, len(absent))
					id := absent[which]
					f.add(id)
					absent = slices.Delete(absent, which, which+1)
					at, _ := slices.BinarySearch(want, id)
					want = slices.Insert(slices.Clone(want), at, id)
				}
			case "copy":
				if copied == nil {
					copied, wantCopied = f.copy(), slices.Clone(want)
				} else { // the copy continues, and its original does not change
					f, want, copied, wantCopied = copied, wantCopied, f, want
					absent, next = nil, max(next, f.next())
				}
			}
			f.wants(rt, want)
			if copied != nil {
				copied.wants(rt, wantCopied)
			}
		}
	})
}

// next returns an id above all others.
func (f *fifo) next() uint64 {
	if f.count == 0 {
		return 1
	}
	return f.max() + 2
}

func (f *fifo) wants(rt *rapid.T, want []uint64) {
	if f.count != len(want) {
		rt.Fatalf("%d ids, want %d", f.count, len(want))
	}
	if len(want) == 0 {
		return
	}
	if f.min() != want[0] || f.max() != want[len(want)-1] {
		rt.Fatalf("from %d to %d, want %d to %d", f.min(), f.max(), want[0], want[len(want)-1])
	}
	for k, id := range want {
		if got := f.at(k); got != id {
			rt.Fatalf("%d comes %d-th, want %d", got, k, id)
		}
		if got := f.below(id); got != k {
			rt.Fatalf("%d are below %d, want %d", got, id, k)
		}
		if at, found := slices.BinarySearch(want, id+1); f.below(id+1) != at || f.contains(id+1) != found {
			rt.Fatalf("%d are below %d, want %d", f.below(id+1), id+1, at)
		}
	}
	if len(f.front()) == 0 && f.full() != nil && f.full().Len() > 0 || len(f.back)-f.left >= len(fifoChunk{}) {
		rt.Fatalf("%d ids in front of chunks, %d behind", len(f.front()), len(f.back)-f.left)
	}
}

// A fifo through which ids pass in order has nothing in a tree.
func TestFifo_InOrder(t *testing.T) {
	t.Parallel()
	var f fifo
	for id := uint64(1); id < 1000; id++ {
		f.add(id)
		if id > 300 {
			f.remove(id - 300)
		}
		if f.looseCount() > 0 {
			t.Fatalf("%d ids are loose", f.looseCount())
		}
	}
	for f.count > 0 { // and from its end
		f.remove(f.max())
		if f.looseCount() > 0 {
			t.Fatalf("%d ids are loose", f.looseCount())
		}
	}
}
