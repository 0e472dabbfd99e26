package fsm

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// The benchmarks of this file are of a state that holds many tasks. Their names
// have key=value parts, by which benchstat compares. 10,000,000 tasks take 4 GB.
var benchTasks = flag.String("bench.tasks", "1000,1000000", "how many tasks are pending while commands are measured")

// benchRound is the number of commands of a kind measured in a row. Each round submits,
// claims, settles and deletes that many tasks, so that the size of the state does not
// change.
const benchRound = 256

// eachSize runs the benchmark with each number of tasks.
func eachSize(b *testing.B, run func(b *testing.B, tasks int)) {
	for _, text := range strings.Split(*benchTasks, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			b.Fatal(err)
		}
		b.Run("tasks="+text, func(b *testing.B) { run(b, n) })
	}
}

// benchState is a state with many pending tasks.
type benchState struct {
	m     *Machine
	index uint64
	entry []byte
}

// newBenchState returns a state with pending tasks of 256 bytes, spread over the types.
func newBenchState(b *testing.B, tasks, types int) *benchState {
	s := &benchState{m: New()}
	s.apply(b, command.SetLevel{Level: record.FeatureLevel})
	params := []byte(`"` + strings.Repeat("x", 254) + `"`)
	for done := 0; done < tasks; {
		n := min(1000, tasks-done)
		submit := command.Submit{Tasks: make([]record.NewTask, n)}
		for i := range n {
			submit.Tasks[i] = record.NewTask{Type: typeName((done + i) % types), Params: params, MaxAttempts: record.DefaultAttempts}
		}
		s.apply(b, submit)
		done += n
	}
	return s
}

func typeName(i int) string { return fmt.Sprintf("type-%04d", i) }

// apply applies the command as a separate entry, which is decoded, too.
func (s *benchState) apply(b *testing.B, c command.Command) Result {
	s.entry = s.appendEntry(s.entry[:0], s.index+1, c)
	return s.applyEntry(b, s.entry)
}

// appendEntry appends the entry at the index, of that command.
func (s *benchState) appendEntry(b []byte, index uint64, c command.Command) []byte {
	return command.AppendEntry(b, record.Stamp{U: int64(index), T: 1_700_000_000_000 + int64(index)}, c)
}

// applyEntry applies the next entry, of one command.
func (s *benchState) applyEntry(b *testing.B, entry []byte) Result {
	s.index++
	a, err := s.m.Apply(s.index, entry)
	if err != nil || a.Results[0].Code != "" {
		b.Fatal(err, a.Results)
	}
	return a.Results[0]
}

// benchHeld is a claim of a round.
type benchHeld struct {
	hold command.Hold
	seq  uint32
}

// BenchmarkApply measures a command in a separate entry, including decoding. Submitted
// tasks have a separate type, which comes after 100 others.
func BenchmarkApply(b *testing.B) {
	eachSize(b, func(b *testing.B, tasks int) {
		s := newBenchState(b, tasks, 100)
		for _, name := range []string{"submit", "claim", "claim-with-request", "extend", "complete", "fail", "release", "expire", "cancel", "delete"} {
			b.Run("command="+name, func(b *testing.B) { s.rounds(b, name) })
		}
		b.Run("command=tick", func(b *testing.B) {
			for b.Loop() {
				s.apply(b, command.Tick{})
			}
		})
	})
}

// rounds measures the command in rounds of whole lives of tasks.
func (s *benchState) rounds(b *testing.B, name string) {
	b.ReportAllocs()
	b.StopTimer()
	b.ResetTimer()
	for left := b.N; left > 0; left -= benchRound {
		s.round(b, name, min(left, benchRound))
	}
}

// round is a round in which n commands of that kind are measured.
func (s *benchState) round(b *testing.B, name string, n int) {
	measured := func(kind string, do func(i int)) {
		if kind == name {
			b.StartTimer()
		}
		for i := range n {
			do(i)
		}
		if kind == name {
			b.StopTimer()
		}
	}
	held := make([]benchHeld, n)
	claim := func(kind string) {
		measured(kind, func(i int) {
			c := command.ClaimNext{WorkerID: "worker-1", Types: []string{"measured"}, Limit: 1}
			if kind == "claim-with-request" {
				c.RequestID = "request-" + strconv.FormatUint(s.index, 10)
			}
			t := s.apply(b, c).Claims[0].Task
			held[i] = benchHeld{command.Hold{ID: t.ID, WorkerID: "worker-1", Token: t.Token}, t.LeaseSeq}
		})
	}
	params := make([]byte, 256)
	copy(params, `{}`)
	measured("submit", func(int) {
		s.apply(b, command.Submit{Tasks: []record.NewTask{{Type: "measured", Payload: params}}})
	})
	claim("claim")
	measured("extend", func(i int) { s.apply(b, command.Extend{Hold: held[i].hold, LeaseMS: 60_000}) })
	measured("release", func(i int) { s.apply(b, command.Release{Hold: held[i].hold}) })
	claim("claim-with-request")
	measured("fail", func(i int) { s.apply(b, command.Fail{Hold: held[i].hold, RetryIn: true}) })
	claim("")
	measured("expire", func(i int) {
		s.apply(b, command.Expire{Items: []command.Lease{{TaskID: held[i].hold.ID, Token: held[i].hold.Token, Seq: held[i].seq}}})
	})
	if name == "cancel" {
		s.apply(b, command.Tick{})
		measured("cancel", func(i int) { s.apply(b, command.Cancel{ID: held[i].hold.ID}) })
	} else {
		claim("")
		measured("complete", func(i int) { s.apply(b, command.Complete{Hold: held[i].hold, Result: params[:2]}) })
	}
	measured("delete", func(i int) { s.apply(b, command.Delete{ID: held[i].hold.ID}) })
}

// BenchmarkClaim is a claim, by how many types are listed and by what is at the head
// of the queue that the claim must pass by. To compare, tasks=256 is as good as an
// empty system.
func BenchmarkClaim(b *testing.B) {
	b.Run("tasks=256/types=1", func(b *testing.B) { newBenchState(b, benchRound, 1).claims(b, typeName(0)) })
	eachSize(b, func(b *testing.B, tasks int) {
		types := min(1000, tasks/benchRound) // each has a round
		s := newBenchState(b, tasks, types)
		listed := func(n int) (names []string) {
			for i := range min(n, types) {
				names = append(names, typeName(i))
			}
			return names
		}
		for _, n := range []int{1, 5, 100} {
			b.Run(fmt.Sprintf("types=%d", n), func(b *testing.B) { s.claims(b, listed(n)...) })
		}
		b.Run("types=any", func(b *testing.B) { s.claims(b) })
		set := func(set record.TypeFields, settings record.TypeSettings) {
			s.apply(b, command.SetType{Type: typeName(0), Set: set, Settings: settings})
		}
		set(record.TypePaused, record.TypeSettings{Paused: true})
		b.Run("types=any/head=paused", func(b *testing.B) { s.claims(b) })
		b.Run("types=5/head=paused", func(b *testing.B) { s.claims(b, listed(5)...) })
		set(record.TypePaused, record.TypeSettings{})
		set(record.TypeMaxClaimed, record.TypeSettings{MaxClaimed: 1})
		s.apply(b, command.ClaimNext{WorkerID: "holder", Types: listed(1), Limit: 1})
		b.Run("types=any/head=limited", func(b *testing.B) { s.claims(b) })
		b.Run("types=5/head=limited", func(b *testing.B) { s.claims(b, listed(5)...) })
		for range benchRound {
			s.apply(b, command.Submit{Tasks: []record.NewTask{{Type: "rare", Params: []byte("1")}}})
		}
		b.Run("types=rare", func(b *testing.B) { s.claims(b, "rare") })
	})
}

// claims measures claims in rounds, between which the claimed tasks are completed
// and deleted and others submitted in their place.
func (s *benchState) claims(b *testing.B, types ...string) {
	b.ReportAllocs()
	b.StopTimer()
	b.ResetTimer()
	claimed := make([]*record.Task, benchRound)
	for left := b.N; left > 0; left -= benchRound {
		n := min(left, benchRound)
		b.StartTimer()
		for i := range n {
			claimed[i] = s.apply(b, command.ClaimNext{WorkerID: "worker-1", Types: types, Limit: 1}).Claims[0].Task
		}
		b.StopTimer()
		for _, t := range claimed[:n] {
			s.apply(b, command.Complete{Hold: command.Hold{ID: t.ID, WorkerID: "worker-1", Token: t.Token}})
			s.apply(b, command.Delete{ID: t.ID})
			s.apply(b, command.Submit{Tasks: []record.NewTask{{Type: t.Type, Params: t.Params}}})
		}
	}
}

// BenchmarkState measures the state as a whole: its memory, a garbage collection, the
// capture of a snapshot, its hash, and a page of a list.
func BenchmarkState(b *testing.B) {
	eachSize(b, func(b *testing.B, tasks int) {
		start := liveHeap()
		s := newBenchState(b, tasks, 1000)
		b.Run("do=collect", func(b *testing.B) {
			heap := liveHeap() - start
			var stats runtime.MemStats
			paused := pauses(&stats)
			for b.Loop() {
				runtime.GC()
			}
			b.ReportMetric(float64(pauses(&stats)-paused)/float64(b.N), "paused-ns/op")
			b.ReportMetric(float64(heap)/float64(tasks), "heap-B/task")
			b.ReportMetric(float64(s.m.Bytes())/float64(tasks), "estimated-B/task")
		})
		b.Run("do=capture", func(b *testing.B) {
			for b.Loop() {
				s.m.Snapshot().Release()
			}
		})
		b.Run("do=hash", func(b *testing.B) {
			for b.Loop() {
				captured := s.m.Snapshot()
				captured.Hash()
				captured.Release()
			}
		})
		b.Run("do=write", func(b *testing.B) {
			for b.Loop() {
				captured := s.m.Snapshot()
				if _, err := captured.WriteTo(io.Discard); err != nil {
					b.Fatal(err)
				}
				captured.Release()
			}
		})
		b.Run("do=restore", func(b *testing.B) {
			var file bytes.Buffer
			captured := s.m.Snapshot()
			if _, err := captured.WriteTo(&file); err != nil {
				b.Fatal(err)
			}
			captured.Release()
			for b.Loop() {
				if _, err := ReadSnapshot(bytes.NewReader(file.Bytes())); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("do=list", func(b *testing.B) {
			for b.Loop() {
				s.m.List(ListQuery{Limit: pageTasksMax, From: uint64(tasks / 2)})
			}
		})
	})
}

// pauses returns how long the collector has stopped everything, in nanoseconds.
func pauses(stats *runtime.MemStats) uint64 {
	runtime.ReadMemStats(stats)
	return stats.PauseTotalNs
}
