package fsm

import (
	"testing"

	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// BenchmarkTrail_Tell measures recording an event about alternating tasks, each with a
// claim.
func BenchmarkTrail_Tell(b *testing.B) {
	m := New()
	m.header.Level = record.FeatureLevel
	m.header.NextID, m.header.NextToken = 100_001, 1_000_000
	task := record.Task{Type: "mail", WorkerID: "worker-17"}
	b.ReportAllocs()
	i := uint64(0)
	for b.Loop() {
		i++
		m.header.Index, m.told = i, 0
		m.header.Stamp.T = int64(i / 10)
		task.ID, task.Token, task.Attempts = i%100_000+1, 1_000_000+i, 2
		m.tellClaim(event.Claimed, &task)
		m.trail.Trim(m.header.Stamp.T)
	}
	b.ReportMetric(float64(m.trail.Header.End)/float64(i), "bytes/event")
}

// BenchmarkTrail_Newest measures a query by a reader that follows the trail and finds one
// event.
func BenchmarkTrail_Newest(b *testing.B) {
	m := New()
	m.header.Level = record.FeatureLevel
	for i := range uint64(10_000) {
		m.header.Index, m.told = i+1, 0
		m.tellAct(event.NodeSet, "some node of the cluster")
	}
	b.ReportAllocs()
	for b.Loop() {
		if n := len(m.Events(event.Query{After: event.Pos{Index: 9_999}, Limit: 100}).Events); n != 1 {
			b.Fatal(n)
		}
	}
}
