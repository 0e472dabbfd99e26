package fsm

import (
	"testing"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// BenchmarkEntries is one task's life as a busy node sees it: entries of 32
// submits, 32 claims with request ids or 32 completes, encoded and decoded; what
// has ended stays.
func BenchmarkEntries(b *testing.B) {
	b.Run("apply", func(b *testing.B) { benchmarkEntries(b, (*Machine).Apply) })
	b.Run("apply into", func(b *testing.B) {
		memory := NewAnswers()
		benchmarkEntries(b, func(m *Machine, index uint64, entry []byte) (Applied, error) {
			return m.ApplyInto(memory, index, entry)
		})
	})
	b.Run("replay", func(b *testing.B) { benchmarkEntries(b, (*Machine).Replay) })
}

func benchmarkEntries(b *testing.B, apply func(*Machine, uint64, []byte) (Applied, error)) {
	const n = 32
	m := New()
	m.header.Level = record.FeatureLevel
	params := make([]byte, 256)
	var index, first, token uint64
	var entry, id []byte
	do := func(of func(k uint64) command.Command) {
		index++
		entry = command.AppendEntryHeader(entry[:0], record.Stamp{U: int64(index), T: int64(index)}, n)
		for k := range uint64(n) {
			entry = command.AppendCommand(entry, of(k))
		}
		if a, err := apply(m, index, entry); err != nil || a.Results[n-1].Code != "" {
			b.Fatal(err, a.Results)
		}
	}
	b.ReportAllocs()
	for i := 0; i < b.N; i += n {
		first, token = m.header.NextID, m.header.NextToken
		do(func(uint64) command.Command {
			return command.Submit{Tasks: []record.NewTask{{Type: "mail", Params: params, MaxAttempts: record.DefaultAttempts}}}
		})
		do(func(k uint64) command.Command {
			id = appendDecimal(append(id[:0], "a-request-of-some-length-"...), token+k)
			return command.ClaimNext{WorkerID: "worker-1", Types: []string{"mail"}, Limit: 1, RequestID: string(id)}
		})
		do(func(k uint64) command.Command {
			return command.Complete{Hold: command.Hold{ID: first + k, WorkerID: "worker-1", Token: token + k}, Result: params[:2]}
		})
	}
}

func appendDecimal(b []byte, v uint64) []byte {
	if v >= 10 {
		b = appendDecimal(b, v/10)
	}
	return append(b, byte('0'+v%10))
}

// BenchmarkBacklog measures a follower that works off a long queue, by entries of one batch
// of 256 completes, each of which claims the next task with a request id. Ended tasks stay.
func BenchmarkBacklog(b *testing.B) {
	const n = 256
	m := New()
	m.header.Level = record.FeatureLevel
	params := make([]byte, 256)
	var index uint64
	var entry, id []byte
	replay := func(c command.Command) Applied {
		index++
		entry = command.AppendEntryHeader(entry[:0], record.Stamp{U: int64(index), T: int64(index)}, 1)
		entry = command.AppendCommand(entry, c)
		a, err := m.Replay(index, entry)
		if err != nil || a.Results[0].Code != "" {
			b.Fatal(err, a.Results)
		}
		return a
	}
	tasks := make([]record.NewTask, n)
	for i := range tasks {
		tasks[i] = record.NewTask{Type: "mail", Params: params, MaxAttempts: record.DefaultAttempts}
	}
	for range b.N + 1 + record.BusyPages*record.PageSize/n {
		replay(command.Submit{Tasks: tasks})
	}
	held := replay(command.ClaimNext{WorkerID: "worker-1", Types: []string{"mail"}, Limit: n}).Results[0].Claims
	holds := make([]command.Hold, n)
	for i := range held {
		holds[i] = command.Hold{ID: held[i].Task.ID, WorkerID: "worker-1", Token: held[i].Token}
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		ops := make([]command.Command, n)
		for k := range ops {
			id = appendDecimal(append(id[:0], "a-request-of-some-length-"...), holds[k].Token)
			ops[k] = command.Complete{Hold: holds[k], Claim: &command.ClaimNext{WorkerID: "worker-1", Types: []string{"mail"}, Limit: 1, RequestID: string(id)}}
		}
		for k, r := range replay(command.Batch{Ops: ops}).Results[0].Results {
			holds[k].ID, holds[k].Token = r.Claims[0].Task.ID, r.Claims[0].Token
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/task")
}
