package fsm

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/wire"
)

func drawBase(t *rapid.T) eventBase {
	return eventBase{
		Pos:  event.Pos{Index: rapid.Uint64Max(1<<50).Draw(t, "index"), Sub: rapid.Uint32().Draw(t, "sub")},
		t:    rapid.Int64Range(0, 1<<42).Draw(t, "t"),
		task: rapid.Uint64Range(1, wire.IDMax).Draw(t, "task"), token: rapid.Uint64Range(1, wire.IDMax).Draw(t, "token"),
	}
}

// drawEvent draws an event as Apply could tell it, behind the base.
func drawEvent(t *rapid.T, base *eventBase) (e event.Event, before uint64, until int64) {
	e.Index, e.Sub = base.Index+rapid.Uint64Max(1<<40).Draw(t, "further"), rapid.Uint32().Draw(t, "sub")
	e.T = base.t + rapid.Int64Range(0, 1<<40).Draw(t, "later")
	e.Kind = rapid.SampledFrom([]event.Kind{event.Submitted, event.Scheduled, event.Claimed, event.Failed, event.Finalized, event.NodeSet, event.TypeChanged, event.KeysReloaded}).Draw(t, "kind")
	if !e.Kind.IsAct() {
		e.TaskID = rapid.Uint64Range(1, wire.IDMax).Draw(t, "task")
		before = rapid.Uint64().Draw(t, "before")
		e.Type = rapid.StringN(0, 20, event.NameMax).Draw(t, "type")
	}
	if rapid.Bool().Draw(t, "has claim") {
		e.Token, e.Attempt = rapid.Uint64Range(1, wire.IDMax).Draw(t, "token"), rapid.Int32Range(0, math.MaxInt32).Draw(t, "attempt")
		e.WorkerID = rapid.StringN(0, 20, event.NameMax).Draw(t, "worker")
	} else if rapid.Bool().Draw(t, "has worker") { // a parent that was finalized without a claim
		e.WorkerID = rapid.StringN(1, 20, event.NameMax).Draw(t, "worker")
	}
	if e.Kind == event.Scheduled {
		until = rapid.Int64().Draw(t, "until")
		e.Message = "until " + calendarText(until)
	} else {
		e.Message = rapid.StringN(0, 300, event.MessageMax).Draw(t, "message")
	}
	if e.Kind == event.TypeChanged {
		e.Type, _, _ = strings.Cut(e.Message, " ")
	}
	return e, before, until
}

// TestEvent_RoundTrip ensures that what was told is read, and that an event takes
// no more room than was made for it.
func TestEvent_RoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
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
	base := eventBase{Pos: event.Pos{Index: 7}, t: 1000, task: 10, token: 20}
	for _, e := range []event.Event{
		{Pos: event.Pos{Index: 7, Sub: 1}, T: 1000, Kind: event.Submitted, TaskID: 3, Type: "mail"},
		{Pos: event.Pos{Index: 9}, T: 1001, Kind: event.Failed, TaskID: 3, Type: "mail", WorkerID: "w1", Token: 21, Attempt: 1, Message: "no route"},
		{Pos: event.Pos{Index: 9}, T: 1001, Kind: event.Scheduled, TaskID: 3, Type: "mail"},
		{Pos: event.Pos{Index: 10}, T: 1001, Kind: event.NodeSet, Message: "n1"},
		{Pos: event.Pos{Index: 11}, T: 1001, Kind: event.Finalized, TaskID: 3, Type: "mail", WorkerID: "p1", Message: "completed"},
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

// trailMachine returns a machine with several chunks of the trail; others are
// gone.
func trailMachine(t *testing.T) *Machine {
	h := newTrailHarness(t)
	h.m.trail.chunkBytes = 3 * eventRoom
	h.do(SetTrail{Bytes: 1 << 20, AgeMS: 100_000})
	for id := range uint64(20) {
		h.stamp.T += 10_000
		h.do(Submit{Tasks: []NewTask{{Type: "mail", MaxAttempts: DefaultAttempts}, {Type: "scan", DelayMS: 1000}}})
		h.do(ClaimTask{ID: 2*id + 1, WorkerID: "w1"})
		h.do(Fail{Hold: Hold{ID: 2*id + 1, WorkerID: "w1"}, Error: "no route"})
		h.do(Cancel{ID: id + 2})
	}
	if len(h.m.trail.chunks) < 3 || h.m.trail.header.Gone == (event.Pos{}) {
		t.Fatalf("%d chunks are not enough, or nothing is gone: %+v", len(h.m.trail.chunks), h.m.trail.header)
	}
	return h.m
}

// TestReadSnapshot_RefusesAWrongTrail puts wrong bytes into the trail, with the
// checksums right: it is refused, or it is a trail all the same, and then nothing
// that reads it is led astray.
func TestReadSnapshot_RefusesAWrongTrail(t *testing.T) {
	t.Parallel()
	refused, read := 0, 0
	chunks := splitSnapshot(snapshotOf(t, trailMachine(t)))
	for c := range chunks {
		if chunks[c].kind != recordTrail {
			continue
		}
		for r, record := range chunks[c].records {
			for i := range record {
				flips := []byte{1, 2, 0x40, 0x80, 0xff}
				if testing.Short() { // another one at each byte
					flips = flips[i%len(flips):][:1]
				}
				for _, flip := range flips {
					bad := bytes.Clone(record)
					bad[i] ^= flip
					chunks[c].records[r] = bad
					m, err := ReadSnapshot(bytes.NewReader(joinSnapshot(seal(chunks))))
					if err != nil {
						refused++
						continue
					}
					read++
					mustCheck(t, m)
					m.Events(event.Query{Limit: 1000})
					for id := range m.header.NextID {
						m.TaskEvents(id)
					}
				}
			}
			chunks[c].records[r] = record
		}
	}
	if refused == 0 || read == 0 {
		t.Errorf("%d were refused, %d read", refused, read)
	}
}

// TestReadSnapshot_RefusesTheWrongTrail ensures that each thing that makes a
// trail wrong is found.
func TestReadSnapshot_RefusesTheWrongTrail(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(m *Machine){
		"a chunk is missing":            func(m *Machine) { m.trail.chunks = m.trail.chunks[:len(m.trail.chunks)-1] },
		"a chunk in the middle":         func(m *Machine) { m.trail.chunks = append(m.trail.chunks[:1:1], m.trail.chunks[2:]...) },
		"all chunks are missing":        func(m *Machine) { m.trail.chunks = nil },
		"the first chunks are missing":  func(m *Machine) { m.trail.header.Gone = m.trail.chunks[0].newest },
		"the end is elsewhere":          func(m *Machine) { m.trail.header.End++ },
		"the newest event is another":   func(m *Machine) { m.trail.header.Newest.Sub++ },
		"it goes past the state":        func(m *Machine) { m.header.Index = m.trail.chunks[0].base.Index },
		"it is told before its time":    func(m *Machine) { m.header.Stamp.T = m.trail.chunks[0].base.t },
		"its times go back":             func(m *Machine) { m.trail.chunks[1].base.t -= 1_000_000 },
		"a task is another":             func(m *Machine) { m.trail.chunks[len(m.trail.chunks)-1].base.task-- },
		"a task that never was":         func(m *Machine) { m.trail.chunks[0].base.task += 1000 },
		"a token that never was":        func(m *Machine) { m.trail.chunks[len(m.trail.chunks)-1].base.token += 1000 },
		"its first event is elsewhere":  func(m *Machine) { m.trail.chunks[0].base.Sub++ },
		"events are cut off":            func(m *Machine) { c := m.trail.chunks[0]; c.events = c.events[:len(c.events)-1] },
		"an event leads nowhere":        leadNowhere,
		"bounds that are not":           func(m *Machine) { m.trail.header.Bounds.AgeMS = -1 },
		"events, where there never was": func(m *Machine) { m.trail.header = trailHeader{} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := trailMachine(t)
			for _, c := range m.trail.chunks {
				c.events = bytes.Clone(c.events)
			}
			change(m)
			if _, err := ReadSnapshot(bytes.NewReader(snapshotOf(t, m))); err == nil {
				t.Error("it is read all the same")
			}
		})
	}
}

// leadNowhere lets the first event of a task that has two lead somewhere else.
func leadNowhere(m *Machine) {
	for _, c := range m.trail.chunks {
		var e rawEvent
		for offset := 0; c.read(offset, &e); offset += e.size {
			if e.before == 0 || e.before > 0x70 {
				continue
			}
			at := bytes.IndexByte(c.events[offset+eventSizeBytes+1:offset+e.size], byte(e.before)) + offset + eventSizeBytes + 1
			c.events[at]++
			if c.read(offset, &e); e.before == uint64(c.events[at]) {
				return
			}
			c.events[at]--
		}
	}
	panic("no event leads to another")
}
