package neighbours

import (
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/jepsen/history"
	"github.com/claimq/claimq/jepsen/recorder"
)

// The time of a read in a rush counts while half of the readers wait, in the crowd or outside it,
// if it was answered with a large page.
func TestReader_askInRush(t *testing.T) {
	t.Parallel()
	large, small := `{"success":true,"events":["`+strings.Repeat("-", rushBytes)+`"]}`, `{"success":true,"events":[]}`
	refused := `{"success":false,"error":"e","code":"overloaded"}`
	for _, c := range []struct {
		name         string
		waiting      int64
		inCrowd      bool
		status       int
		body         string
		crowd, alone int // that count
	}{
		{"in the crowd", 20, true, 200, large, 1, 0},
		{"beside it", 21, false, 200, large, 0, 1},
		{"half of them are not there", 20, false, 200, large, 0, 0},
		{"a small page", 39, true, 200, small, 0, 0},
		{"a refusal", 39, true, 503, refused, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n := &Neighbours{cfg: Config{Readers: 40}, rec: recorder.New(7), began: time.Now(), notes: map[history.EventKind]int{}, readers: said{c.status, "", c.body}, rush: rush{all: map[int]*history.Rush{}}}
			n.rush.waiting.Store(c.waiting)
			good := (&reader{Neighbours: n}).askInRush(t.Context(), "http://n1", c.inCrowd)
			did := history.Rush{}
			if all := n.Did().Rushes; len(all) == 1 {
				did = all[0]
			}
			if good != (c.status == 200) || len(did.Crowd) != c.crowd || len(did.Alone) != c.alone || n.rush.waiting.Load() != c.waiting {
				t.Errorf("good: %v, did %+v, %d wait", good, did, n.rush.waiting.Load())
			}
		})
	}
}

// Once in six seconds all readers rush, and then crowd, one node, the next one each time.
func TestNeighbours_phase(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		since time.Duration
		node  string
		phase phase
	}{
		{0, "a", ""},
		{3600 * time.Millisecond, "a", rushes},
		{4600 * time.Millisecond, "a", ""},
		{5100 * time.Millisecond, "a", crowds},
		{6100 * time.Millisecond, "b", ""},
		{15600 * time.Millisecond, "a", rushes},
	} {
		n := &Neighbours{cfg: Config{Nodes: []string{"a", "b"}, Readers: rushPerCore * runtime.NumCPU()}, began: time.Now().Add(-c.since)}
		if node, phase := n.phase(); node != c.node || phase != c.phase {
			t.Errorf("after %v: %s %q, want %s %q", c.since, node, phase, c.node, c.phase)
		}
	}
}

// Readers rush if they are many for the machine, over its own network.
func TestConfig_mayRush(t *testing.T) {
	t.Parallel()
	few, many := Config{Readers: 39}, Config{Readers: 40}
	own := many
	own.Dial = new(net.Dialer).DialContext
	if few.mayRush(10) || !many.mayRush(10) || own.mayRush(10) {
		t.Error("40 readers rush on 10 cores, fewer do not, nor do any on a network of ours")
	}
}

// Of each rush is told from when to when it was, and how long its reads took.
func TestRush_said(t *testing.T) {
	t.Parallel()
	r := rush{all: map[int]*history.Rush{}}
	r.add(2, false, 3, 100)
	for _, took := range []int64{5, 9} {
		r.add(0, true, took, 20+took)
	}
	r.add(0, false, 12, 31)
	want := []history.Rush{{At: 19, To: 31, Crowd: []int64{5, 9}, Alone: []int64{12}}, {At: 97, To: 100, Alone: []int64{3}}}
	if diff := cmp.Diff(want, r.said()); diff != "" {
		t.Error(diff)
	}
}
