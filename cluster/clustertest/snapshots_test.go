package clustertest

import (
	"io"
	"testing"

	"github.com/hashicorp/raft"
)

// An incomplete snapshot leaves the previous one in its place.
func TestSnapshots_cutOff(t *testing.T) {
	t.Parallel()
	s := newSnapshots()
	_, transport := raft.NewInmemTransport("a")
	begin := func(index uint64) raft.SnapshotSink {
		t.Helper()
		sink, err := s.Create(1, index, 1, raft.Configuration{}, 1, transport)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(sink, "state"); err != nil {
			t.Fatal(err)
		}
		return sink
	}
	begin(5)
	if all, err := s.List(); err != nil || len(all) != 0 {
		t.Errorf("one that was not closed: %v, %v", all, err)
	}
	if err := begin(7).Close(); err != nil {
		t.Fatal(err)
	}
	if err := begin(9).Cancel(); err != nil {
		t.Fatal(err)
	}
	all, err := s.List()
	if err != nil || len(all) != 1 || all[0].Index != 7 {
		t.Fatalf("%v, %v, want the one of index 7", all, err)
	}
	_, r, err := s.Open(all[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(r); err != nil || string(b) != "state" {
		t.Errorf("it is %q, %v", b, err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}
