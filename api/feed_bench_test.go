package api

import (
	"testing"

	"github.com/claimq/claimq/api/trail"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
)

// BenchmarkPacket measures the work of an event that does not depend on the number of streams: reading and encoding
// it.
func BenchmarkPacket(b *testing.B) {
	s, node := setup(b)
	tasks := make([]fsm.NewTask, 1_000)
	for i := range tasks {
		tasks[i] = fsm.NewTask{Type: "mail", Params: []byte("1")}
	}
	if _, err := node.Apply(command.Submit{Tasks: tasks}); err != nil {
		b.Fatal(err)
	}
	events := 0
	b.ReportAllocs()
	for b.Loop() {
		read, err := trail.Read(b.Context(), s.core.node, event.Query{})
		if err != nil {
			b.Fatal(err)
		}
		events += len(read.Packet.Events)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(events), "ns/event")
}
