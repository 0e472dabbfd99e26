package fsm

import (
	"bytes"
	"testing"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/internal/proof"
)

// trailMachine returns a machine with several chunks of the trail; others are
// gone.
func trailMachine(t *testing.T) *Machine {
	h := newTrailHarness(t)
	h.m.trail.ChunkBytes = 3 * event.EventRoom
	h.do(command.SetTrail{Bytes: 1 << 20, AgeMS: 100_000})
	for id := range uint64(20) {
		h.stamp.T += 10_000
		h.do(command.Submit{Tasks: []record.NewTask{{Type: "mail", MaxAttempts: record.DefaultAttempts}, {Type: "scan", DelayMS: 1000}}})
		h.do(command.ClaimTask{ID: 2*id + 1, WorkerID: "w1"})
		h.do(command.Fail{Hold: command.Hold{ID: 2*id + 1, WorkerID: "w1"}, Error: "no route"})
		h.do(command.Cancel{ID: id + 2})
	}
	if len(h.m.trail.Chunks()) < 3 || h.m.trail.Header.Gone == (event.Pos{}) {
		t.Fatalf("%d chunks are not enough, or nothing is gone: %+v", len(h.m.trail.Chunks()), h.m.trail.Header)
	}
	return h.m
}

// keepParts lets the trail have these chunks only.
func keepParts(m *Machine, parts ...*event.Chunk) {
	kept := event.Log{Header: m.trail.Header}
	for _, c := range parts {
		kept.Load(c)
	}
	m.trail = kept
}

// TestReadSnapshot_RefusesAWrongTrail puts wrong bytes into the trail, with the
// checksums right: it is refused, or it is a trail all the same, and then nothing
// that reads it is led astray.
func TestReadSnapshot_RefusesAWrongTrail(t *testing.T) {
	t.Parallel()
	refused, read := 0, 0
	chunks := splitSnapshot(snapshotOf(t, trailMachine(t)))
	for c := range chunks {
		if chunks[c].kind != record.KindTrail {
			continue
		}
		for r, packed := range chunks[c].records {
			for i := range packed {
				flips := []byte{1, 2, 0x40, 0x80, 0xff}
				if !proof.Whole() { // another one at each byte
					flips = flips[i%len(flips):][:1]
				}
				for _, flip := range flips {
					bad := bytes.Clone(packed)
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
			chunks[c].records[r] = packed
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
		"a chunk is missing":            func(m *Machine) { keepParts(m, m.trail.Chunks()[:len(m.trail.Chunks())-1]...) },
		"a chunk in the middle":         func(m *Machine) { keepParts(m, append(m.trail.Chunks()[:1:1], m.trail.Chunks()[2:]...)...) },
		"all chunks are missing":        func(m *Machine) { keepParts(m) },
		"the first chunks are missing":  func(m *Machine) { m.trail.Header.Gone = m.trail.Chunks()[0].Base.Pos },
		"the end is elsewhere":          func(m *Machine) { m.trail.Header.End++ },
		"the newest event is another":   func(m *Machine) { m.trail.Header.Newest.Sub++ },
		"it goes past the state":        func(m *Machine) { m.header.Index = m.trail.Chunks()[0].Base.Index },
		"it is told before its time":    func(m *Machine) { m.header.Stamp.T = m.trail.Chunks()[0].Base.T },
		"its times go back":             func(m *Machine) { m.trail.Chunks()[1].Base.T -= 1_000_000 },
		"a task is another":             func(m *Machine) { m.trail.Chunks()[len(m.trail.Chunks())-1].Base.Task-- },
		"a task that never was":         func(m *Machine) { m.trail.Chunks()[0].Base.Task += 1000 },
		"a token that never was":        func(m *Machine) { m.trail.Chunks()[len(m.trail.Chunks())-1].Base.Token += 1000 },
		"its first event is elsewhere":  func(m *Machine) { m.trail.Chunks()[0].Base.Sub++ },
		"events are cut off":            func(m *Machine) { c := m.trail.Chunks()[0]; c.Events = c.Events[:len(c.Events)-1] },
		"bounds that are not":           func(m *Machine) { m.trail.Header.Bounds.AgeMS = -1 },
		"events, where there never was": func(m *Machine) { m.trail.Header = event.Header{} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := trailMachine(t)
			for _, c := range m.trail.Chunks() {
				c.Events = bytes.Clone(c.Events)
			}
			change(m)
			if _, err := ReadSnapshot(bytes.NewReader(snapshotOf(t, m))); err == nil {
				t.Error("it is read all the same")
			}
		})
	}
}
