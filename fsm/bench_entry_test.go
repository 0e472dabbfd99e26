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
