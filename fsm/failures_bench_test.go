package fsm

import (
	"fmt"
	"testing"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// newFailed returns a state with n tasks. One in every has failed with one of
// 40 kinds of errors, and the others completed.
func newFailed(tb testing.TB, tasks, every int) *Machine {
	tb.Helper()
	m := New()
	index := uint64(0)
	apply := func(t int64, commands ...command.Command) []Result {
		index++
		return mustApplyTo(tb, m, testEntry{index, record.Stamp{U: t, T: storyEpoch + t}, commands}).Results
	}
	apply(1, command.SetLevel{Level: 1})
	for first := 0; first < tasks; first += 1000 {
		batch := make([]record.NewTask, 1000)
		for i := range batch {
			batch[i] = record.NewTask{Type: fmt.Sprintf("type-%d", (first+i)/every%10), Params: []byte(`{"to":"ann@example.org"}`), MaxAttempts: 1}
		}
		apply(int64(first), command.Submit{Tasks: batch})
		var settle []command.Command
		for _, c := range apply(int64(first), command.ClaimNext{WorkerID: "w1", Limit: 1000})[0].Claims {
			id := c.Task.ID
			hold := command.Hold{ID: id, WorkerID: "w1", Token: c.Token}
			if id%uint64(every) == 0 {
				settle = append(settle, command.Fail{Hold: hold, Error: fmt.Sprintf("deliver to \"u%d@example.org\": error of kind %c: timeout after %d ms\nat mail.go:%d", id, 'a'+rune(id/uint64(every)%40), id, id)})
			} else {
				settle = append(settle, command.Complete{Hold: hold, Result: []byte(`"sent"`)})
			}
		}
		apply(int64(first)+500, settle...)
	}
	return m
}

// 10,000 failed tasks are read, as GET /api/failures does it before it groups them.
func BenchmarkFailures(b *testing.B) {
	m := newFailed(b, 20_000, 2)
	for _, limit := range []int{1000, 10_000} {
		b.Run(fmt.Sprint(limit), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				looked := 0
				m.Failures(FailuresQuery{Limit: limit}, func(_, _ []byte, _ End) { looked++ })
				if looked != limit {
					b.Fatalf("it looked at %d", looked)
				}
			}
		})
	}
}

// The longest that a page of errors that no task has holds the lock.
func BenchmarkList_Look(b *testing.B) {
	m := newFailed(b, 20_000, 1)
	none := ListQuery{Filter: record.Filter{Status: record.StatusFailed}, Failure: func(_, err []byte) bool { return string(err) == "none" }, Limit: 100}
	for _, look := range []int{500, 1000, 10_000} {
		b.Run(fmt.Sprint(look), func(b *testing.B) {
			for b.Loop() {
				none.Look = look
				m.List(none)
			}
		})
	}
}

// A page of what ended last costs the same whatever else there is, and so does a page of an
// error that nearly no task has.
func BenchmarkList_ByEnd(b *testing.B) {
	m := newFailed(b, 1_000_000, 1000)
	newest := ListQuery{Filter: record.Filter{Status: record.StatusFailed}, ByEnd: true, Limit: 50}
	failed := m.List(newest).Tasks[0]
	for name, q := range map[string]ListQuery{
		"failed, 50":      newest,
		"completed, 50":   {Filter: record.Filter{Status: record.StatusCompleted}, ByEnd: true, Limit: 50},
		"completed, 1000": {Filter: record.Filter{Status: record.StatusCompleted}, ByEnd: true, Limit: 1000},
		"failed, 50 of error": {
			Filter: record.Filter{Status: record.StatusFailed}, ByEnd: true, Limit: 50,
			Failure: func(taskType, err []byte) bool { return string(taskType) == failed.Type && string(err) == failed.Error },
		},
		"failed, 50, by id": {Filter: record.Filter{Status: record.StatusFailed}, Descending: true, Limit: 50},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m.List(q)
			}
		})
	}
}
