package fsm

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/fsm/event"
)

// checkTrail: the chunks follow each other, each event leads to its task's event
// before, and every task's newest event is known.
func (m *Machine) checkTrail() error {
	h, newest, last := &m.trail.header, m.trail.header.Gone, map[uint64]uint64{}
	end := h.End
	if len(m.trail.chunks) > 0 {
		end = m.trail.chunks[0].start
	}
	for _, c := range m.trail.chunks {
		if c.start != end || len(c.events) == 0 {
			return fmt.Errorf("a chunk of %d bytes at %d, behind %d", len(c.events), c.start, end)
		}
		var e rawEvent
		for offset := 0; offset < len(c.events); offset += e.size {
			at := c.start + uint64(offset)
			if !c.read(offset, &e) || e.Compare(newest) <= 0 {
				return fmt.Errorf("no event at %d, or not behind %v: %+v", at, newest, e)
			}
			if before, ok := last[e.task]; ok && e.task != 0 && e.before != at-before {
				return fmt.Errorf("the event at %d leads back by %d, the task's last is at %d", at, e.before, before)
			}
			newest, last[e.task] = e.Pos, at
		}
		if c.newest != newest || c.newestT != e.t {
			return fmt.Errorf("a chunk's newest event is %v, want %v", c.newest, newest)
		}
		end = c.end()
	}
	if newest != h.Newest || end != h.End {
		return fmt.Errorf("the trail ends with %v at %d, want %v at %d", newest, end, h.Newest, h.End)
	}
	return m.checkLastEvents(last)
}

func (m *Machine) checkLastEvents(want map[uint64]uint64) error {
	delete(want, 0)
	for id, at := range want {
		if got := m.trail.last.get(id); got != at+1 {
			return fmt.Errorf("the newest event of task %d is at %d, want %d", id, int64(got)-1, at)
		}
	}
	n := 0
	for number, p := range m.trail.last.pages {
		used := 0
		for _, end := range p.ends {
			if end != 0 {
				used++
			}
		}
		if used == 0 || used != p.used {
			return fmt.Errorf("page %d has %d tasks, says %d", number, used, p.used)
		}
		n += used
	}
	if n != len(want) {
		return fmt.Errorf("%d tasks have a newest event, want %d", n, len(want))
	}
	return nil
}

// tellMany lets so many events be told, each in an entry of its own, the
// calendar going on by step before each.
func (h *trailHarness) tellMany(n int, step int64) {
	for range n {
		h.stamp.T += step
		h.do(SetNode{Node: NodeRecord{UUID: "u", NodeID: strings.Repeat("n", 100), Version: fmt.Sprint(h.index)}})
	}
}

// trailHarness applies one command an entry.
type trailHarness struct {
	t     *testing.T
	m     *Machine
	index uint64
	stamp Stamp
}

func newTrailHarness(t *testing.T) *trailHarness {
	h := &trailHarness{t: t, m: New(), stamp: Stamp{T: scriptEpoch}}
	h.do(SetLevel{Level: FeatureLevel})
	return h
}

func (h *trailHarness) do(c Command) Result {
	h.t.Helper()
	h.index++
	a := mustApplyTo(h.t, h.m, testEntry{Index: h.index, Stamp: h.stamp, Commands: []Command{c}})
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

// TestTrail_IsBoundedByBytes ensures that the newest events are kept, up to so
// many bytes, and no more than a chunk less.
func TestTrail_IsBoundedByBytes(t *testing.T) {
	t.Parallel()
	h := newTrailHarness(t)
	h.do(SetTrail{Bytes: 1 << 20, AgeMS: 1 << 40})
	h.tellMany(20_000, 0)
	if n := h.m.trail.size(); n > 1<<20 || n < 1<<20-2*trailChunkBytes {
		t.Errorf("%d bytes are kept, want 1 MiB or a little less", n)
	}
	bytes, at := h.m.TrailStats()
	if first := h.m.Events(event.Query{Limit: 1}).Events[0]; bytes != h.m.trail.size() || at != first.T {
		t.Errorf("%d bytes from %d are said to be kept, want %d from %d", bytes, at, h.m.trail.size(), first.T)
	}
	oldest := h.kept()
	if page := h.m.Events(event.Query{After: event.Pos{Index: oldest - 2, Sub: math.MaxUint32}}); !page.Gone || page.Oldest != (event.Pos{Index: oldest}) {
		t.Errorf("behind what is gone there is %+v, the oldest is %d", page, oldest)
	}
	if page := h.m.Events(event.Query{After: event.Pos{Index: oldest - 1}, Limit: 1}); page.Gone || page.Events[0].Index != oldest {
		t.Errorf("behind the newest that is gone there is %+v, want %d", page, oldest)
	}
	mustCheck(t, h.m)

	h.do(SetTrail{Bytes: trailChunkBytes, AgeMS: 1 << 40})
	if n := h.m.trail.size(); n > trailChunkBytes {
		t.Errorf("%d bytes are kept, want at most %d", n, trailChunkBytes)
	}
	mustCheck(t, h.m)
}

// TestTrail_IsBoundedByAge ensures that events go when they are too old, whatever
// the clocks did, and that the last one may go.
func TestTrail_IsBoundedByAge(t *testing.T) {
	t.Parallel()
	h := newTrailHarness(t)
	h.do(SetTrail{Bytes: 1 << 30, AgeMS: 80_000})
	h.tellMany(1000, 1000)
	if age := h.index - h.kept(); age < 79 || age > 90 {
		t.Errorf("%d events are kept, one a second, want those of 80 seconds, or an eighth more", age)
	}
	h.stamp.T += 79_999
	h.do(Tick{})
	if h.kept() != h.index-1 && h.kept() == 0 {
		t.Errorf("the newest event is gone too early")
	}
	h.stamp.T++
	h.do(Tick{})
	if h.kept() != 0 || len(h.m.trail.chunks) != 0 || len(h.m.trail.last.pages) != 0 {
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
	h.m.trail.chunkBytes = 2 * eventRoom
	h.tellMany(3*trailTrimMax, 0)
	chunks := len(h.m.trail.chunks)
	h.do(SetTrail{Bytes: 1, AgeMS: 60_000})
	if n := chunks - len(h.m.trail.chunks); n > trailTrimMax || n < trailTrimMax-1 {
		t.Errorf("%d of %d chunks went at once, want %d", n, chunks, trailTrimMax)
	}
	for range chunks / trailTrimMax {
		h.do(Tick{})
	}
	if n := len(h.m.trail.chunks); n != 1 {
		t.Errorf("%d chunks are left, want 1", n)
	}
	mustCheck(t, h.m)
}

// TestTrail_TellsNothingBelowItsLevel ensures that a cluster that not all know
// the trail of has none.
func TestTrail_TellsNothingBelowItsLevel(t *testing.T) {
	t.Parallel()
	m := New()
	a := mustApplyTo(t, m, testEntry{Index: 1, Commands: []Command{
		SetLevel{Level: levelSight - 1}, Submit{Tasks: []NewTask{{Type: "mail"}}}, Cancel{ID: 1},
	}})
	if a.Events || m.trail.header != (trailHeader{}) || len(m.trail.chunks) != 0 || len(m.TaskEvents(1)) != 0 {
		t.Errorf("told %+v", m.trail.header)
	}
	if !slices.Equal(a.Ended, []uint64{1}) {
		t.Errorf("ended %v, want 1", a.Ended)
	}
}

// TestTrail_LooksAtABoundedNumber ensures that a query that selects nothing
// says where to go on.
func TestTrail_LooksAtABoundedNumber(t *testing.T) {
	t.Parallel()
	h := newTrailHarness(t)
	h.tellMany(eventsLookedMax+500, 0)
	q := event.Query{WorkerID: "nobody", Limit: 10}
	page := h.m.Events(q)
	if len(page.Events) != 0 || !page.More || page.Next.Index != eventsLookedMax {
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
	h.do(Submit{Tasks: []NewTask{{Type: strings.Repeat("t", 100_000), MaxAttempts: DefaultAttempts}}})
	h.do(ClaimTask{ID: 1, WorkerID: strings.Repeat("w", 100_000)})
	h.do(Fail{Hold: Hold{ID: 1, WorkerID: strings.Repeat("w", 100_000)}, Error: "x" + long})
	h.do(SetType{Type: "\xff" + strings.Repeat("\xbf", 3000), Set: TypePaused, Settings: TypeSettings{Paused: true}})
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
	h.m.trail.chunkBytes = 4 * eventRoom
	h.do(Submit{Tasks: []NewTask{{Type: "mail"}, {Type: "scan"}}})
	for range 70 {
		h.do(ClaimTask{ID: 1, WorkerID: "w1"})
		h.tellMany(3, 1)
		h.do(Release{Hold: Hold{ID: 1, WorkerID: "w1"}})
	}
	events := h.m.TaskEvents(1)
	if len(events) != taskEventsMax || events[99].Kind != event.Requeued || events[0].Index >= events[1].Index {
		t.Errorf("%d events, the last %+v", len(events), events[len(events)-1])
	}
	h.do(Cancel{ID: 1})
	h.do(Delete{ID: 1})
	events = h.m.TaskEvents(1)
	if n := len(events); n != taskEventsMax || events[n-1].Kind != event.Deleted || events[n-2].Kind != event.Cancelled {
		t.Errorf("%d events, the last %+v", n, events[n-1])
	}
	if got := h.m.TaskEvents(2); len(got) != 1 || got[0].Kind != event.Submitted {
		t.Errorf("the other task has %+v", got)
	}
	if got := h.m.TaskEvents(99); got != nil {
		t.Errorf("a task that never was has %+v", got)
	}
}

// TestCalendarText ensures that times are written as the time package does.
func TestCalendarText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ms := rapid.Int64Range(-62_167_219_200_000, 253_402_300_799_999).Draw(t, "ms")
		want := time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
		if got := calendarText(ms); got != want {
			t.Fatalf("%d is %s, want %s", ms, got, want)
		}
	})
	for _, ms := range []int64{math.MinInt64, math.MaxInt64} {
		if got := calendarText(ms); !strings.HasSuffix(got, "Z") {
			t.Errorf("%d is %s", ms, got)
		}
	}
}
