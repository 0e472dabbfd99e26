package fsm

import (
	"fmt"
	"testing"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// newMillion returns a state with 1,000,000 pending tasks of that many types, with that
// many priorities and in eight queues by attempts left.
func newMillion(b *testing.B, types, priorities int) *Machine {
	m := New()
	m.header.Level = record.FeatureLevel
	dice := uint64(1)
	for i := range uint64(1000) {
		tasks := make([]record.NewTask, 1000)
		for j := range tasks {
			dice = dice*6364136223846793005 + 1442695040888963407
			tasks[j] = record.NewTask{
				Type: fmt.Sprint("type-", (dice>>33)%uint64(types)), Params: []byte("{}"),
				Priority: int32((dice >> 40) % uint64(priorities)), MaxAttempts: int32(dice>>60) % 8,
			}
		}
		if _, err := m.apply(i+1, record.Stamp{U: int64(i), T: int64(i)}, []command.Command{command.Submit{Tasks: tasks}}); err != nil {
			b.Fatal(err)
		}
	}
	return m
}

// BenchmarkWhy asks why a task waits, with 1,000,000 pending tasks of its type, of few
// priorities and of almost as many.
func BenchmarkWhy(b *testing.B) {
	for _, priorities := range []int{1, 10, 1 << 24} {
		b.Run(fmt.Sprint(priorities, " priorities"), func(b *testing.B) {
			m := newMillion(b, 1, priorities)
			b.ReportAllocs()
			id := uint64(0)
			for b.Loop() {
				id = (id + 611_953) % 1_000_000
				if w, ok := m.Why(id+1, m.Stamp()); !ok || w.Ahead < 0 {
					b.Fatalf("task %d: %+v", id+1, w)
				}
			}
		})
	}
	b.Run("10000 holders", func(b *testing.B) {
		m := newMillion(b, 1, 1)
		index := m.Index()
		for i := range 20 {
			index++
			if _, err := m.apply(index, m.Stamp(), []command.Command{command.ClaimNext{WorkerID: fmt.Sprint("w", i), Limit: 1000}}); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := m.apply(index+1, m.Stamp(), []command.Command{command.SetType{Type: "type-0", Set: record.TypeMaxClaimed, Settings: record.TypeSettings{MaxClaimed: 20_000}}}); err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if w, _ := m.Why(900_000, m.Stamp()); len(w.Reasons) != 1 || len(w.Reasons[0].Holders) != whyHoldersMax {
				b.Fatalf("%+v", w)
			}
		}
	})
}

// BenchmarkStats counts 1,000,000 tasks of 5,000 types.
func BenchmarkStats(b *testing.B) {
	m := newMillion(b, 5000, 10)
	b.Run("stats", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if s := m.Stats(m.Stamp()); len(s.Types) != 5000 {
				b.Fatal(len(s.Types))
			}
		}
	})
	b.Run("types", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if v := m.Types("", 0, m.Stamp()); len(v) != 5000 {
				b.Fatal(len(v))
			}
		}
	})
	for _, q := range []TypesQuery{{Order: "oldest", Limit: 10}, {Attention: true, Order: "oldest", Limit: 10}, {Order: "submitted_per_s", Limit: 200}, {Name: "e-49"}} {
		b.Run(fmt.Sprintf("types by %s, %d, attention %v, name %s", q.Order, q.Limit, q.Attention, q.Name), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if f := findTypes(m, q, record.Stamp{T: m.Stamp().T + 90_000}); f.Total != 5000 || len(f.Types) == 0 {
					b.Fatal(f.Total)
				}
			}
		})
	}
}
