package storage

import (
	"testing"

	"github.com/hashicorp/raft"
	"pgregory.net/rapid"

	"github.com/claimq/claimq/internal/proof"
)

// The cache against a map that forgets nothing but what was deleted: what the cache has was
// stored last, and it never holds more than its bound.
func TestLogCache_HoldsWhatWasStored(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(t *rapid.T) {
		const bytesMax = 20 * logEntryOverhead
		c := newLogCache(bytesMax)
		stored := map[uint64]*raft.Log{}
		next, term := uint64(1), uint64(1)
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				var logs []*raft.Log
				for range rapid.IntRange(1, 8).Draw(t, "count") {
					size := rapid.SampledFrom([]int{0, 1, 100, 1000, bytesMax}).Draw(t, "size")
					log := &raft.Log{Index: next, Term: term, Data: make([]byte, size)}
					logs = append(logs, log)
					stored[next] = log
					next++
				}
				c.add(logs)
			},
			"delete the front": func(t *rapid.T) {
				hi := rapid.Uint64Range(0, next-1).Draw(t, "hi")
				c.deleteRange(1, hi)
				for i := uint64(1); i <= hi; i++ {
					delete(stored, i)
				}
			},
			"delete the end": func(t *rapid.T) {
				lo := rapid.Uint64Range(1, next).Draw(t, "lo")
				c.deleteRange(lo, next-1)
				for i := lo; i < next; i++ {
					delete(stored, i)
				}
				next, term = lo, term+1
			},
			"overwrite the end": func(t *rapid.T) {
				lo := rapid.Uint64Range(1, next).Draw(t, "lo")
				for i := lo; i < next; i++ {
					delete(stored, i)
				}
				next, term = lo+1, term+1
				stored[lo] = &raft.Log{Index: lo, Term: term}
				c.add([]*raft.Log{stored[lo]})
			},
			"skip to behind a snapshot": func(t *rapid.T) {
				next += rapid.Uint64Range(1, 100).Draw(t, "gap")
			},
			"": func(t *rapid.T) {
				checkCache(t, c, stored, next)
			},
		})
	})
}

func checkCache(t *rapid.T, c *logCache, stored map[uint64]*raft.Log, next uint64) {
	var bytes int64
	for i := uint64(0); i <= next+1; i++ {
		var got raft.Log
		if !c.get(i, &got) {
			continue
		}
		want := stored[i]
		if want == nil {
			t.Fatalf("entry %d was deleted, or never stored", i)
		}
		if got.Index != i || got.Term != want.Term || len(got.Data) != len(want.Data) {
			t.Fatalf("entry %d: got %+v, want %+v", i, got, *want)
		}
		bytes += logEntryBytes(&got)
	}
	if bytes != c.bytes || bytes > c.bytesMax {
		t.Fatalf("holds %d bytes, counts %d of at most %d", bytes, c.bytes, c.bytesMax)
	}
}

// The newest entries are there as long as they fit: the cache exists for them.
func TestLogCache_KeepsTheNewest(t *testing.T) {
	t.Parallel()
	c := newLogCache(10 * (logEntryOverhead + 1))
	for i := uint64(1); i <= 1000; i++ {
		c.add([]*raft.Log{{Index: i, Data: []byte{1}}})
	}
	var log raft.Log
	for i := uint64(1); i <= 1000; i++ {
		if got, want := c.get(i, &log), i > 990; got != want {
			t.Errorf("entry %d: in the cache %v, want %v", i, got, want)
		}
	}
}

// The cache keeps only those chunks of a restore that are on their way.
func TestLogCache_largeEntries(t *testing.T) {
	t.Parallel()
	const bytesMax = 64 << 20
	c := newLogCache(bytesMax)
	c.add([]*raft.Log{{Index: 1, Data: make([]byte, bytesMax/2)}})
	for index := uint64(1); index <= 100; index++ {
		c.add([]*raft.Log{{Index: index, Data: make([]byte, LargeEntryBytes)}})
		if index > 1 && c.bytes > bytesMax/cacheLargePart {
			t.Fatalf("after %d large entries the cache holds %d bytes", index, c.bytes)
		}
	}
	var log raft.Log
	for index := uint64(100 - LargeEntriesMax); index <= 100; index++ {
		if !c.get(index, &log) {
			t.Errorf("entry %d is gone", index)
		}
	}
	c.add([]*raft.Log{{Index: 101, Data: make([]byte, 1000)}})
	if !c.get(100, &log) {
		t.Error("a small entry drops a large one")
	}
}
