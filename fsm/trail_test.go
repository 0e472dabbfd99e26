package fsm

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// checkTrail checks that loading the trail would give the same.
func (m *Machine) checkTrail() error {
	if problem := m.trail.Check(trailLimits(m)); problem != "" {
		return fmt.Errorf("trail: %s", problem)
	}
	return nil
}

// trailSize returns how many bytes the events that are kept take.
func trailSize(m *Machine) (n int64) {
	for _, c := range m.trail.Chunks() {
		n += int64(len(c.Events))
	}
	return n
}

// tellMany records n events, each in a separate entry, advancing the calendar by step
// before each.
func (h *trailHarness) tellMany(n int, step int64) {
	for range n {
		h.stamp.T += step
		h.do(command.SetNode{Node: record.NodeRecord{UUID: "u", NodeID: strings.Repeat("n", 100), Version: fmt.Sprint(h.index)}})
	}
}

// trailHarness applies one command an entry.
type trailHarness struct {
	t     *testing.T
	m     *Machine
	index uint64
	stamp record.Stamp
}

func newTrailHarness(t *testing.T) *trailHarness {
	h := &trailHarness{t: t, m: New(), stamp: record.Stamp{T: scriptEpoch}}
	h.do(command.SetLevel{Level: record.FeatureLevel})
	return h
}

func (h *trailHarness) do(c command.Command) Result {
	h.t.Helper()
	h.index++
	a := mustApplyTo(h.t, h.m, testEntry{Index: h.index, Stamp: h.stamp, Commands: []command.Command{c}})
	return a.Results[0]
}

// kept returns the index of the oldest event that is kept.
func (h *trailHarness) kept() uint64 {
	page := h.m.Events(event.Query{Limit: 1})
	if len(page.Events) == 0 {
		return 0
	}
	return page.Events[0].Index
}

// TestTrail_IsBoundedByBytes ensures that the newest events are kept up to the bound, less
// at most one chunk.
func TestTrail_IsBoundedByBytes(t *testing.T) {
	t.Parallel()
	h := newTrailHarness(t)
	h.do(command.SetTrail{Bytes: 1 << 20, AgeMS: 1 << 40})
	h.tellMany(20_000, 0)
	if n := trailSize(h.m); n > 1<<20 || n < 1<<20-2*event.ChunkBytes {
		t.Errorf("%d bytes are kept, want 1 MiB or a little less", n)
	}
	bytes, at := h.m.TrailStats()
	if first := h.m.Events(event.Query{Limit: 1}).Events[0]; bytes != trailSize(h.m) || at != first.T {
		t.Errorf("%d bytes from %d are said to be kept, want %d from %d", bytes, at, trailSize(h.m), first.T)
	}
	oldest := h.kept()
	if page := h.m.Events(event.Query{After: event.Pos{Index: oldest - 2, Sub: math.MaxUint32}}); !page.Gone || page.Oldest != (event.Pos{Index: oldest}) {
		t.Errorf("behind what is gone there is %+v, the oldest is %d", page, oldest)
	}
	if page := h.m.Events(event.Query{After: event.Pos{Index: oldest - 1}, Limit: 1}); page.Gone || page.Events[0].Index != oldest {
		t.Errorf("behind the newest that is gone there is %+v, want %d", page, oldest)
	}
	mustCheck(t, h.m)

	h.do(command.SetTrail{Bytes: event.ChunkBytes, AgeMS: 1 << 40})
	if n := trailSize(h.m); n > event.ChunkBytes {
		t.Errorf("%d bytes are kept, want at most %d", n, event.ChunkBytes)
	}
	mustCheck(t, h.m)
}

// TestTrail_IsBoundedByAge ensures that events go when they are too old, whatever
// the clocks did, and that the last one may go.
func TestTrail_IsBoundedByAge(t *testing.T) {
	t.Parallel()
	h := newTrailHarness(t)
	h.do(command.SetTrail{Bytes: 1 << 30, AgeMS: 80_000})
	h.tellMany(1000, 1000)
	if age := h.index - h.kept(); age < 79 || age > 90 {
		t.Errorf("%d events are kept, one a second, want those of 80 seconds, or an eighth more", age)
	}
	h.stamp.T += 79_999
	h.do(command.Tick{})
	if h.kept() != h.index-1 && h.kept() == 0 {
		t.Errorf("the newest event is gone too early")
	}
	h.stamp.T++
	h.do(command.Tick{})
	if h.kept() != 0 || len(h.m.trail.Chunks()) != 0 {
		t.Errorf("event %d is still there", h.kept())
	}
	if bytes, at := h.m.TrailStats(); bytes != 0 || at != 0 {
		t.Errorf("of an empty trail, %d bytes from %d are said to be kept", bytes, at)
	}
	newest := h.m.NewestEvent()
	if newest.Index != h.index-2 {
		t.Errorf("the newest event was %v, want that of %d", newest, h.index-2)
	}
	if page := h.m.Events(event.Query{After: event.Pos{Index: 3}, Limit: 1}); !page.Gone || page.Oldest.Index != h.index+1 {
		t.Errorf("of an empty trail there is %+v", page)
	}
	if page := h.m.Events(event.Query{After: newest, Limit: 1}); page.Gone || page.More || page.Next != newest {
		t.Errorf("behind the newest there is %+v", page)
	}
	mustCheck(t, h.m)
	mustCheck(t, restore(t, snapshotOf(t, h.m)))
}

// TestTrail_LetsGoABoundedAmount ensures that no entry lets too much go at once,
// and that the next ones go on.
func TestTrail_LetsGoABoundedAmount(t *testing.T) {
	t.Parallel()
	h := newTrailHarness(t)
	h.m.trail.ChunkBytes = 2 * event.EventRoom
	h.tellMany(3*event.TrimMax, 0)
	chunks := len(h.m.trail.Chunks())
	h.do(command.SetTrail{Bytes: 1, AgeMS: 60_000})
	if n := chunks - len(h.m.trail.Chunks()); n > event.TrimMax || n < event.TrimMax-1 {
		t.Errorf("%d of %d chunks went at once, want %d", n, chunks, event.TrimMax)
	}
	for range chunks / event.TrimMax {
		h.do(command.Tick{})
	}
	if n := len(h.m.trail.Chunks()); n != 1 {
		t.Errorf("%d chunks are left, want 1", n)
	}
	mustCheck(t, h.m)
}

// TestTrail_LooksAtABoundedNumber ensures that a query that selects nothing
// says where to go on.
func TestTrail_LooksAtABoundedNumber(t *testing.T) {
	t.Parallel()
	h := newTrailHarness(t)
	h.tellMany(event.LookedMax+500, 0)
	q := event.Query{WorkerID: "nobody", Limit: 10}
	page := h.m.Events(q)
	if len(page.Events) != 0 || !page.More || page.Next.Index != event.LookedMax {
		t.Fatalf("the first look gives %+v", page)
	}
	q.After = page.Next
	if page = h.m.Events(q); page.More || page.Next != h.m.NewestEvent() {
		t.Fatalf("the second look gives %+v", page)
	}
	if n := len(h.m.Events(event.Query{Limit: 1_000_000}).Events); n != 1000 {
		t.Errorf("%d events in a page", n)
	}
}

// TestTrail_CutsTexts ensures that a long error is cut at a whole character, and
// that what no API lets in does no harm.
func TestTrail_CutsTexts(t *testing.T) {
	t.Parallel()
	h := newTrailHarness(t)
	long := strings.Repeat("é", 1000)
	h.do(command.Submit{Tasks: []record.NewTask{{Type: strings.Repeat("t", 100_000), MaxAttempts: record.DefaultAttempts}}})
	h.do(command.ClaimTask{ID: 1, WorkerID: strings.Repeat("w", 100_000)})
	h.do(command.Fail{Hold: command.Hold{ID: 1, WorkerID: strings.Repeat("w", 100_000)}, Error: "x" + long})
	h.do(command.SetType{Type: "\xff" + strings.Repeat("\xbf", 3000), Set: record.TypePaused, Settings: record.TypeSettings{Paused: true}})
	events := h.m.TaskEvents(1)
	if got := events[2].Message; len(got) != 1023 || !utf8.ValidString(got) {
		t.Errorf("a message of %d bytes, want 1023 whole ones", len(got))
	}
	if len(events[1].WorkerID) != event.NameMax || len(events[1].Type) != event.NameMax {
		t.Errorf("a worker of %d bytes, a type of %d", len(events[1].WorkerID), len(events[1].Type))
	}
	mustCheck(t, h.m)
	mustCheck(t, restore(t, snapshotOf(t, h.m)))
}

// TestTaskEvents_OfOneAmongMany ensures that a task's story is told without those
// of the others, across chunks, also after it was removed.
func TestTaskEvents_OfOneAmongMany(t *testing.T) {
	t.Parallel()
	h := newTrailHarness(t)
	h.m.trail.ChunkBytes = 4 * event.EventRoom
	h.do(command.Submit{Tasks: []record.NewTask{{Type: "mail"}, {Type: "scan"}}})
	for range 70 {
		h.do(command.ClaimTask{ID: 1, WorkerID: "w1"})
		h.tellMany(3, 1)
		h.do(command.Release{Hold: command.Hold{ID: 1, WorkerID: "w1"}})
	}
	events := h.m.TaskEvents(1)
	if len(events) != event.TaskMax || events[99].Kind != event.Requeued || events[0].Index >= events[1].Index {
		t.Errorf("%d events, the last %+v", len(events), events[len(events)-1])
	}
	h.do(command.Cancel{ID: 1})
	h.do(command.Delete{ID: 1})
	events = h.m.TaskEvents(1)
	if n := len(events); n != event.TaskMax || events[n-1].Kind != event.Deleted || events[n-2].Kind != event.Cancelled {
		t.Errorf("%d events, the last %+v", n, events[n-1])
	}
	if got := h.m.TaskEvents(2); len(got) != 1 || got[0].Kind != event.Submitted {
		t.Errorf("the other task has %+v", got)
	}
	if got := h.m.TaskEvents(99); got != nil {
		t.Errorf("a task that never was has %+v", got)
	}
}
