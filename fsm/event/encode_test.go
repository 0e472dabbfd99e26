package event

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/internal/proof"
)

func drawBase(t *rapid.T) Base {
	return Base{
		Pos:  Pos{Index: rapid.Uint64Max(1<<50).Draw(t, "index"), Sub: rapid.Uint32().Draw(t, "sub")},
		T:    rapid.Int64Range(0, 1<<42).Draw(t, "t"),
		Task: rapid.Uint64Range(1, record.IDMax).Draw(t, "task"), Token: rapid.Uint64Range(1, record.IDMax).Draw(t, "token"),
	}
}

// drawEvent draws an event as Apply could tell it, behind the base.
func drawEvent(t *rapid.T, base *Base) (e Event, before uint64, until int64) {
	e.Index, e.Sub = base.Index+rapid.Uint64Max(1<<40).Draw(t, "further"), rapid.Uint32().Draw(t, "sub")
	e.T = base.T + rapid.Int64Range(0, 1<<40).Draw(t, "later")
	e.Kind = rapid.SampledFrom([]Kind{Submitted, Scheduled, Claimed, Failed, Finalized, NodeSet, TypeChanged, KeysReloaded}).Draw(t, "kind")
	if !e.Kind.IsAct() {
		e.TaskID = rapid.Uint64Range(1, record.IDMax).Draw(t, "task")
		before = rapid.Uint64().Draw(t, "before")
		e.Type = rapid.StringN(0, 20, NameMax).Draw(t, "type")
	}
	if rapid.Bool().Draw(t, "has claim") {
		e.Token, e.Attempt = rapid.Uint64Range(1, record.IDMax).Draw(t, "token"), rapid.Int32Range(0, math.MaxInt32).Draw(t, "attempt")
		e.WorkerID = rapid.StringN(0, 20, NameMax).Draw(t, "worker")
	} else if rapid.Bool().Draw(t, "has worker") { // a parent that was finalized without a claim
		e.WorkerID = rapid.StringN(1, 20, NameMax).Draw(t, "worker")
	}
	if e.Kind == Scheduled {
		until = rapid.Int64().Draw(t, "until")
		e.Message = "until " + calendarText(until)
	} else {
		e.Message = rapid.StringN(0, 300, MessageMax).Draw(t, "message")
	}
	if e.Kind == TypeChanged {
		e.Type, _, _ = strings.Cut(e.Message, " ")
	}
	return e, before, until
}

// TestEvent_RoundTrip ensures that events read back equal the written ones and take no more than
// the room reserved for them.
func TestEvent_RoundTrip(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(t *rapid.T) {
		base := drawBase(t)
		e, before, until := drawEvent(t, &base)
		b := appendEvent([]byte("before it"), &base, &e, before, until)[len("before it"):]
		if len(b) > roomFor(&e) {
			t.Fatalf("it takes %d bytes, room was made for %d", len(b), roomFor(&e))
		}
		var got rawEvent
		if !readEvent(append(bytes.Clone(b), "behind it"...), &base, &got) {
			t.Fatalf("it cannot be read: %x", b)
		}
		if diff := cmp.Diff(e, got.event()); diff != "" || got.before != before || got.size != len(b) {
			t.Fatalf("before %d, want %d, %d of %d bytes (-told +read):\n%s", got.before, before, got.size, len(b), diff)
		}
		if place := peekPlace(b, &base); place != e.Pos {
			t.Fatalf("its place is %v, want %v", place, e.Pos)
		}
		if id := peekTask(b, &base); id != e.TaskID {
			t.Fatalf("its task is %d, want %d", id, e.TaskID)
		}
		for n := range b {
			if readEvent(b[:n], &base, &got) {
				t.Fatalf("it can be read of %d of %d bytes", n, len(b))
			}
		}
	})
}

// FuzzReadEvent ensures that any bytes can be looked at, and that an event has one
// encoding.
func FuzzReadEvent(f *testing.F) {
	base := Base{Pos: Pos{Index: 7}, T: 1000, Task: 10, Token: 20}
	for _, e := range []Event{
		{Pos: Pos{Index: 7, Sub: 1}, T: 1000, Kind: Submitted, TaskID: 3, Type: "mail"},
		{Pos: Pos{Index: 9}, T: 1001, Kind: Failed, TaskID: 3, Type: "mail", WorkerID: "w1", Token: 21, Attempt: 1, Message: "no route"},
		{Pos: Pos{Index: 9}, T: 1001, Kind: Scheduled, TaskID: 3, Type: "mail"},
		{Pos: Pos{Index: 10}, T: 1001, Kind: NodeSet, Message: "n1"},
		{Pos: Pos{Index: 11}, T: 1001, Kind: Finalized, TaskID: 3, Type: "mail", WorkerID: "p1", Message: "completed"},
	} {
		f.Add(appendEvent(nil, &base, &e, 5, 2000))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		peekPlace(b, &base)
		var e rawEvent
		if !readEvent(b, &base, &e) {
			return
		}
		out := e.event()
		if again := appendEvent(nil, &base, &out, e.before, e.until); !bytes.Equal(again, b[:e.size]) {
			t.Errorf("%+v is read of\n%x and written as\n%x", e, b[:e.size], again)
		}
	})
}

// TestCalendarText ensures that times are written as the time package does.
func TestCalendarText(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(t *rapid.T) {
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

// TestTrail_IndexRefusesWhatLeadsNowhere ensures that an event leads to that of the same task
// before it.
func TestTrail_IndexRefusesWhatLeadsNowhere(t *testing.T) {
	t.Parallel()
	told := NewLog()
	for i := range uint64(3) {
		told.Append(&Event{Pos: Pos{Index: i + 1}, Kind: Retried, TaskID: 7, Type: "mail"}, 0, 8, 1)
	}
	most := Limits{Moment: 3, NextID: 8, NextToken: 1}
	if problem := told.Check(most); problem != "" {
		t.Fatal(problem)
	}
	for back := uint64(0); back < 64; back++ {
		read := Log{Header: told.Header}
		c := told.chunks[0].Saved
		var e rawEvent
		c.read(eventSize(c.Events), &e) // the second
		first, second := c.Events[:eventSize(c.Events)], c.Events[eventSize(c.Events):]
		again := e.event()
		b := appendEvent(bytes.Clone(first), &c.Base, &again, back, 0)
		c.Events = append(b, second[e.size:]...)
		read.Load(&Chunk{Saved: c})
		if problem := read.Index(most); (problem == "") != (back == e.before) {
			t.Errorf("the second leads back by %d, to %d: %q", e.before, back, problem)
		}
	}
}
