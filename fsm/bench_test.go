package fsm

import "testing"

// BenchmarkApply is one task's life: submit, claim, complete, each a command
// of its own entry, without decoding, with 100,000 other tasks pending.
func BenchmarkApply(b *testing.B) {
	b.Run("task", func(b *testing.B) { benchmarkApply(b, "") })
	b.Run("task with claim request", func(b *testing.B) { benchmarkApply(b, "request") })
}

func benchmarkApply(b *testing.B, requestID string) {
	m := New()
	index := uint64(0)
	apply := func(c ...Command) Applied {
		index++
		a, err := m.apply(index, Stamp{U: int64(index), T: int64(index)}, c)
		if err != nil {
			b.Fatal(err)
		}
		return a
	}
	payload := make([]byte, 256)
	submit := Submit{Tasks: []NewTask{{Type: "mail", Payload: payload, MaxAttempts: DefaultAttempts}}}
	for range 100_000 {
		apply(submit)
	}
	b.ReportAllocs()
	var id []byte
	for b.Loop() {
		apply(submit)
		claim := ClaimNext{WorkerID: "w1", Types: []string{"mail"}, Limit: 1}
		if requestID != "" {
			id = appendDecimal(append(id[:0], requestID...), index)
			claim.RequestID = string(id)
		}
		c := apply(claim).Results[0].Claims[0]
		r := apply(Complete{Hold: Hold{ID: c.Task.ID, WorkerID: "w1", Token: c.Token}}).Results[0]
		if r.Code != "" {
			b.Fatal(r.Code)
		}
		apply(Delete{ID: c.Task.ID})
	}
}

func appendDecimal(b []byte, v uint64) []byte {
	if v >= 10 {
		b = appendDecimal(b, v/10)
	}
	return append(b, byte('0'+v%10))
}

// BenchmarkSnapshot is what a capture costs the apply goroutine, with
// 1,000,000 tasks.
func BenchmarkSnapshot(b *testing.B) {
	m := New()
	for i := range uint64(1000) {
		tasks := make([]NewTask, 1000)
		for j := range tasks {
			tasks[j] = NewTask{Type: "mail", Params: []byte("{}")}
		}
		if _, err := m.apply(i+1, Stamp{}, []Command{Submit{Tasks: tasks}}); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		m.Snapshot().Release()
	}
}
