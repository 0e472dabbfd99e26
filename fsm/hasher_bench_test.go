package fsm

import (
	"fmt"
	"testing"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/snapshot"
)

// BenchmarkHasher is the state hash of 100,000 pending tasks: of all of them, and by
// a hasher, since whose last hash 1,000 tasks changed or none did. Tasks that are
// claimed in order are neighbours; that each is on another page is the worst.
func BenchmarkHasher(b *testing.B) {
	const tasks, changed = 100_000, 1000
	s := newBenchState(b, tasks, 100)
	b.Run("do=all", func(b *testing.B) {
		for b.Loop() {
			captured := s.m.Snapshot()
			captured.Hash()
			captured.Release()
		}
	})
	for _, c := range []struct {
		name   string
		apart  uint64
		change int
	}{{"none", 1, 0}, {"neighbours", 1, changed}, {"scattered", tasks / changed, changed}} {
		b.Run(fmt.Sprintf("do=incremental/changed=%s", c.name), func(b *testing.B) {
			b.StopTimer()
			h := snapshot.NewHasher(nil)
			next, priority := uint64(1), int32(0)
			for i := -1; i < b.N; i++ {
				for range c.change {
					s.apply(b, command.Patch{ID: next, SetPriority: true, Priority: priority})
					if next += c.apart; next > tasks {
						next, priority = next%c.apart+1, priority+1
					}
				}
				if i == 0 { // the first hash reads all
					b.ResetTimer()
				}
				captured := s.m.Snapshot()
				b.StartTimer()
				h.Hash(captured)
				b.StopTimer()
				captured.Release()
			}
		})
	}
}
