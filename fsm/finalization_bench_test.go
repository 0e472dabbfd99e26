package fsm

import (
	"testing"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// BenchmarkClaimFinalization is a claim of a finalization of a parent that keeps
// 100 attempts already: one that is extended, one that another has, and one of a
// plain task, which keeps none.
func BenchmarkClaimFinalization(b *testing.B) {
	b.Run("extended", func(b *testing.B) { benchmarkClaimFinalization(b, 1, "p1") })
	b.Run("already claimed", func(b *testing.B) { benchmarkClaimFinalization(b, 1, "p2") })
	b.Run("not ready", func(b *testing.B) { benchmarkClaimFinalization(b, 3, "p1") })
}

func benchmarkClaimFinalization(b *testing.B, id uint64, processor string) {
	m := New()
	m.header.Level = record.FeatureLevel
	index := uint64(0)
	apply := func(c command.Command) {
		index++
		if _, err := m.apply(index, record.Stamp{U: int64(index), T: int64(index)}, []command.Command{c}); err != nil {
			b.Fatal(err)
		}
	}
	apply(command.Submit{Tasks: []record.NewTask{newParentOf(1, true, false), {Type: "mail", Params: []byte("{}")}}})
	apply(command.ClaimTask{ID: 2, WorkerID: "w"})
	apply(command.Complete{Hold: command.Hold{ID: 2, WorkerID: "w"}})
	for range 2 * record.FinalizationAttemptsMax {
		apply(command.ClaimFinalization{ID: 1, ProcessorID: "p1", TimeoutMS: 3_600_000})
	}
	b.ReportAllocs()
	for b.Loop() {
		apply(command.ClaimFinalization{ID: id, ProcessorID: processor, TimeoutMS: 3_600_000})
	}
}
