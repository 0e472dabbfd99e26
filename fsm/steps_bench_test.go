package fsm

import (
	"testing"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// BenchmarkStep measures the completion of one step of a parent with 1,000 steps that
// depend on nothing, on the previous one, or half of them on all of the other half. A plain
// task is there for comparison.
func BenchmarkStep(b *testing.B) {
	one := func(after ...uint16) record.NewStep {
		return record.NewStep{Name: "a-step-of-some-length", DependsOn: after, Task: record.NewTask{Type: "load", Params: []byte("{}")}}
	}
	var flat, chain, layers []record.NewStep
	var half []uint16
	for i := range uint16(record.StepsMax) {
		flat = append(flat, one())
		if i == 0 {
			chain = append(chain, one())
		} else {
			chain = append(chain, one(i-1))
		}
		if i < record.StepsMax/2 {
			layers = append(layers, one())
			half = append(half, i)
		} else {
			layers = append(layers, one(half...))
		}
	}
	b.Run("none", func(b *testing.B) { benchmarkStep(b, nil) })
	b.Run("1000 apart", func(b *testing.B) { benchmarkStep(b, flat) })
	b.Run("1000 in a chain", func(b *testing.B) { benchmarkStep(b, chain) })
	b.Run("500 after 500", func(b *testing.B) { benchmarkStep(b, layers) })
}

func benchmarkStep(b *testing.B, steps []record.NewStep) {
	var m *Machine
	index := uint64(0)
	apply := func(c command.Command) Result {
		index++
		a, err := m.apply(index, record.Stamp{U: int64(index), T: int64(index)}, []command.Command{c})
		if err != nil || a.Results[0].Code != "" {
			b.Fatal(err, a.Results[0].Code)
		}
		return a.Results[0]
	}
	left := 0
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		if left == 0 {
			m, left = New(), record.StepsMax
			m.header.Level = record.FeatureLevel
			if steps != nil {
				apply(command.Submit{Tasks: []record.NewTask{{Type: "parent", Parent: &record.NewParent{Steps: steps}}}})
			} else {
				for range record.StepsMax {
					apply(command.Submit{Tasks: []record.NewTask{{Type: "load", Params: []byte("{}")}}})
				}
			}
		}
		left--
		c := apply(command.ClaimNext{WorkerID: "w1", Types: []string{"load"}, Limit: 1}).Claims[0]
		b.StartTimer()
		apply(command.Complete{Hold: command.Hold{ID: c.Task.ID, WorkerID: "w1", Token: c.Token}})
	}
}
