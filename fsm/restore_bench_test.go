package fsm

import (
	"bytes"
	"flag"
	"fmt"
	"testing"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

var benchRestored = flag.Int("bench.restored", 200_000, "how many tasks the snapshots have that are restored")

// BenchmarkReadSnapshot measures a restore of tasks that wait, that wait and have keys, or
// that have ended.
func BenchmarkReadSnapshot(b *testing.B) {
	for _, kind := range []string{"waiting", "keyed", "completed"} {
		b.Run("tasks="+kind, func(b *testing.B) {
			saved := benchSnapshot(b, *benchRestored, kind)
			b.SetBytes(int64(len(saved)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ReadSnapshot(bytes.NewReader(saved)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// benchSnapshot returns a snapshot with tasks of one kind.
func benchSnapshot(b *testing.B, tasks int, kind string) []byte {
	s := &benchState{m: New()}
	s.apply(b, command.SetLevel{Level: record.FeatureLevel})
	const batch = 1000
	for done := 0; done < tasks; done += batch {
		submit := command.Submit{Tasks: make([]record.NewTask, batch)}
		for i := range submit.Tasks {
			submit.Tasks[i] = record.NewTask{
				Type: typeName(i % 10), MaxAttempts: record.DefaultAttempts,
				Params: []byte(fmt.Sprintf(`"%0254d"`, done+i)),
			}
			if kind == "keyed" {
				submit.Tasks[i].Key = fmt.Sprintf("order-%d", done+i)
			}
		}
		s.apply(b, submit)
		if kind == "completed" {
			for _, c := range s.apply(b, command.ClaimNext{WorkerID: "worker-1", Limit: batch}).Claims {
				s.apply(b, command.Complete{Hold: command.Hold{ID: c.Task.ID, WorkerID: "worker-1", Token: c.Task.Token}, Result: []byte(`{}`)})
			}
		}
	}
	return snapshotOf(b, s.m)
}
