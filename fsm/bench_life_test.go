package fsm

import (
	"flag"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"syscall"
	"testing"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

var benchRemembered = flag.Int("bench.remembered", rememberedMax, "how many claim requests are remembered before a life is measured")

const (
	lifeOps = 64 // ops of a batch
	// lifeMS is the time between two rounds: 16,000 lives a second.
	lifeMS = 4
	// lifeTicks is the number of rounds between two ticks, so that each removes as many tasks
	// as it may.
	lifeTicks = dueTickMax / lifeOps
	// lifeChunk bounds the rounds that are encoded ahead.
	lifeChunk = 256
	// lifeGarbage is the memory that a run may use before the collector starts.
	lifeGarbage = 2 << 30
)

// BenchmarkLife is the life of one task as a node applies it in steady state: a submit with
// a key, a claim with a request id and a complete, each an op of a batch of 64, replayed
// from encoded entries. The memory of claim requests is full, so each claim drops one.
// With ids=shared the claims of a batch share one request id, as package client sends them.
//
// With removal=no ended tasks are deleted, which is not measured; with removal=yes ticks
// remove them a second later, and remember and forget them. cpu-ns/op is the time on a
// processor, which other work on the machine changes less than ns/op.
func BenchmarkLife(b *testing.B) {
	eachSize(b, func(b *testing.B, tasks int) {
		for _, ids := range []string{"own", "shared"} {
			b.Run("ids="+ids, func(b *testing.B) {
				l := newLifeBench(b, tasks)
				l.shared = ids == "shared"
				for range (*benchRemembered + lifeOps - 1) / lifeOps {
					l.begin()
					l.replay(b, l.round(true))
				}
				b.Run("removal=no", func(b *testing.B) { l.measure(b, false) })
				b.Run("removal=yes", func(b *testing.B) { l.measure(b, true) })
			})
		}
	})
}

// lifeBench replays the lives of tasks of a separate type.
type lifeBench struct {
	*benchState
	params          []byte
	u               int64
	id, token, name uint64 // of the next task, claim, and request or key
	memory          []byte // of the entries of a chunk
	rounds          int
	shared          bool // claims share the request id of their batch
}

func newLifeBench(b *testing.B, tasks int) *lifeBench {
	l := &lifeBench{benchState: newBenchState(b, tasks, 100), params: make([]byte, 256)}
	copy(l.params, `{}`)
	l.apply(b, command.SetType{Type: "measured", Set: record.TypeRetention, Settings: record.TypeSettings{RetentionMS: 1000}})
	l.id, l.token, l.u = l.m.header.NextID, l.m.header.NextToken, int64(l.index)
	return l
}

// begin frees the memory of the entries made so far.
func (l *lifeBench) begin() { l.memory = l.memory[:0] }

// entry appends an entry of one command to the memory.
func (l *lifeBench) entry(c command.Command) []byte {
	start := len(l.memory)
	l.memory = command.AppendEntry(l.memory, record.Stamp{U: l.u, T: 1_700_000_000_000 + l.u}, c)
	return l.memory[start:len(l.memory):len(l.memory)]
}

// round returns the entries of the next round: three batches and perhaps a tick, or a
// deletion of the tasks.
func (l *lifeBench) round(removal bool) [][]byte {
	all := command.Batch{Ops: make([]command.Command, lifeOps)}
	if l.shared {
		all.RequestID = fmt.Sprintf("request-%014d", l.name)
	}
	batch := func(op func(k uint64) command.Command) []byte {
		for k := range all.Ops {
			all.Ops[k] = op(uint64(k))
		}
		return l.entry(all)
	}
	l.u += lifeMS
	worker := func(k uint64) string { return fmt.Sprintf("worker-%02d", k) }
	entries := [][]byte{
		batch(func(k uint64) command.Command {
			key := fmt.Sprintf("key-%018d", l.name+k)
			return command.Submit{Tasks: []record.NewTask{{Type: "measured", Key: key, Payload: l.params, MaxAttempts: record.DefaultAttempts}}}
		}),
		batch(func(k uint64) command.Command {
			c := command.ClaimNext{WorkerID: worker(k), Types: []string{"measured"}, Limit: 1}
			if !l.shared {
				c.RequestID = fmt.Sprintf("request-%014d", l.name+k)
			}
			return c
		}),
		batch(func(k uint64) command.Command {
			return command.Complete{Hold: command.Hold{ID: l.id + k, WorkerID: worker(k), Token: l.token + k}}
		}),
	}
	switch l.rounds++; {
	case !removal:
		entries = append(entries, batch(func(k uint64) command.Command { return command.Delete{ID: l.id + k} }))
	case l.rounds%lifeTicks == 0:
		entries = append(entries, l.entry(command.Tick{}))
	}
	l.id, l.token, l.name = l.id+lifeOps, l.token+lifeOps, l.name+lifeOps
	return entries
}

func (l *lifeBench) replay(b *testing.B, entries [][]byte) {
	for _, entry := range entries {
		l.index++
		a, err := l.m.Replay(l.index, entry)
		if err != nil {
			b.Fatal(err)
		}
		for i := range a.Results[0].Results {
			if r := &a.Results[0].Results[i]; r.Code != "" || r.Repeated {
				b.Fatal(i, *r)
			}
		}
	}
}

func (l *lifeBench) measure(b *testing.B, removal bool) {
	b.ReportAllocs()
	b.StopTimer()
	runtime.GC()
	var heap runtime.MemStats
	runtime.ReadMemStats(&heap)
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(int64(heap.Sys + lifeGarbage)))
	b.ResetTimer()
	var cpu int64
	for left := (b.N + lifeOps - 1) / lifeOps; left > 0; left -= lifeChunk {
		l.begin()
		var measured, after [][]byte
		for range min(left, lifeChunk) {
			entries := l.round(removal)
			if !removal {
				measured, after = append(measured, entries[:3]...), append(after, entries[3])
				continue
			}
			measured = append(measured, entries...)
		}
		b.StartTimer()
		start := processorTime(b)
		l.replay(b, measured)
		cpu += processorTime(b) - start
		b.StopTimer()
		l.replay(b, after)
	}
	b.ReportMetric(float64(cpu)/(math.Ceil(float64(b.N)/lifeOps)*lifeOps), "cpu-ns/op")
}

// processorTime returns the nanoseconds that the process has run for.
func processorTime(b *testing.B) int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return usage.Utime.Nano() + usage.Stime.Nano()
}
