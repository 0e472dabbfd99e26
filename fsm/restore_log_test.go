package fsm

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/snapshot"
)

// restorer is an empty cluster's machine, into which a backup is restored through
// the log.
type restorer struct {
	t     *testing.T
	m     *Machine
	stamp record.Stamp
	begin uint64 // index of the last RestoreBegin
}

// newRestorer returns one whose cluster has lived for a moment, by a calendar that is
// behind that of smallMachine: nothing in its trail is too old.
func newRestorer(t *testing.T) *restorer {
	r := &restorer{t: t, m: New(), stamp: record.Stamp{U: 5000, T: 1_780_000_000_000}}
	r.apply(command.SetLevel{Level: record.FeatureLevel})
	r.m.SetChain(7)
	r.apply(command.SetNode{Node: record.NodeRecord{UUID: "u", NodeID: "n9"}})
	return r
}

// restoredMachine returns one into which a backup of old was restored.
func restoredMachine(t *testing.T, old *Machine) *Machine {
	t.Helper()
	r := newRestorer(t)
	r.apply(command.SetNode{Node: record.NodeRecord{UUID: "v", NodeID: "n10"}})
	r.apply(command.SetPageSecret{Secret: tokenHash("before")})
	saved := r.graft(old)
	r.beginOf(len(saved))
	r.send(saved, len(saved))
	r.want(command.RestoreEnd{Begin: r.begin}, "")
	return r.m
}

// apply applies a separate entry, as encoded in the log.
func (r *restorer) apply(c command.Command) Applied {
	r.t.Helper()
	applied, err := r.m.Apply(r.m.Index()+1, command.AppendEntry(nil, r.stamp, c))
	if err != nil {
		r.t.Fatal(err)
	}
	mustCheck(r.t, r.m)
	return applied
}

func (r *restorer) want(c command.Command, want Code) {
	r.t.Helper()
	if got := r.apply(c).Results[0].Code; got != want {
		r.t.Fatalf("%v: code %q, want %q", command.KindOf(c), got, want)
	}
}

// graft returns the snapshot to restore, of a backup of m.
func (r *restorer) graft(m *Machine) []byte {
	r.t.Helper()
	saved, err := readBackupOf(backupOf(r.t, m))
	if err != nil {
		r.t.Fatal(err)
	}
	s, err := saved.Graft(r.m.Ground())
	if err != nil {
		r.t.Fatal(err)
	}
	defer s.Release()
	return written(r.t, s)
}

// beginOf begins a restore of that size.
func (r *restorer) beginOf(bytes int) {
	r.t.Helper()
	r.want(command.RestoreBegin{Bytes: uint64(bytes)}, "")
	r.begin = r.m.Index()
}

// send sends the bytes in chunks of that size.
func (r *restorer) send(saved []byte, size int) {
	r.t.Helper()
	for offset := 0; offset < len(saved); offset += size {
		r.want(r.chunk(saved, offset, size), "")
	}
}

func (r *restorer) chunk(saved []byte, offset, size int) command.RestoreChunk {
	return command.RestoreChunk{Begin: r.begin, Offset: uint64(offset), Data: saved[offset:min(offset+size, len(saved))]}
}

// A state comes through the log, cut anywhere, and goes on as that of the cluster:
// with its nodes, its clocks and its index.
func TestRestore_throughTheLog(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 13, 100, 4096, 1 << 20} {
		r, old := newRestorer(t), smallMachine(t)
		saved := r.graft(old)
		want := restore(t, saved)
		r.beginOf(len(saved))
		for offset := 0; offset < len(saved); offset += size {
			c := r.chunk(saved, offset, size)
			r.want(c, "")
			got, ok := r.m.Restoring()
			if left := (Restoring{Begin: r.begin, Taken: c.Offset + uint64(len(c.Data)), Bytes: uint64(len(saved))}); !ok || got != left {
				t.Fatalf("restoring %+v, %t; want %+v", got, ok, left)
			}
			if r.m.Contents() != "" {
				t.Fatalf("the state holds %s before the end", r.m.Contents())
			}
		}
		index := r.m.Index() + 1
		applied := r.apply(command.RestoreEnd{Begin: r.begin})
		if code := applied.Results[0].Code; code != "" || !applied.Restored || applied.Stamp != want.Stamp() {
			t.Fatalf("in chunks of %d: code %q, restored %t, stamp %v; want %v", size, code, applied.Restored, applied.Stamp, want.Stamp())
		}
		if _, ok := r.m.Restoring(); ok || r.m.Index() != index {
			t.Errorf("still restoring: %t, index %d, want %d", ok, r.m.Index(), index)
		}
		if diff := cmp.Diff([]record.NodeRecord{{UUID: "u", NodeID: "n9"}}, r.m.Nodes()); diff != "" {
			t.Error(diff)
		}
		if got := r.m.moment(); got <= old.Index() {
			t.Errorf("its moment is %d, that of the backup was %d", got, old.Index())
		}
		// But for those the state is the one that was grafted.
		same := restore(t, snapshotOf(t, r.m))
		if same.Chain() != 7 {
			t.Errorf("its chain is %d, want the cluster's", same.Chain())
		}
		same.header.Index, same.header.Ahead, same.header.Chain, same.nodes = want.header.Index, want.header.Ahead, want.header.Chain, want.nodes
		if hashOf(same) != hashOf(want) {
			t.Errorf("in chunks of %d: another state", size)
		}
	}
}

// What follows a restore finds a machine like any other: its snapshot is read back
// to the same, its trail goes on behind the backup's, and schedules get versions
// that none had.
func TestRestore_goesOn(t *testing.T) {
	t.Parallel()
	r, old := newRestorer(t), smallMachine(t)
	for i := range 500 { // longer than the new cluster lives
		applyLog(t, old, []testEntry{{Index: old.Index() + 1, Stamp: record.Stamp{U: old.Stamp().U + int64(i), T: old.Stamp().T + int64(i)}, Commands: []command.Command{
			command.Submit{Tasks: []record.NewTask{{Type: "mail", Params: []byte("1"), MaxAttempts: record.DefaultAttempts}}},
		}}})
	}
	saved := r.graft(old)
	r.beginOf(len(saved))
	r.send(saved, 1000)
	r.want(command.RestoreEnd{Begin: r.begin}, "")
	newest := r.m.NewestEvent()
	if r.m.Index() >= newest.Index {
		t.Fatalf("index %d is not below the newest event's %d", r.m.Index(), newest.Index)
	}
	twin := restore(t, snapshotOf(t, r.m))
	r.stamp = record.Stamp{U: r.m.Stamp().U + 100, T: r.m.Stamp().T + 100}
	for i, c := range []command.Command{
		command.Submit{Tasks: []record.NewTask{{Type: "mail", Params: []byte("1"), MaxAttempts: record.DefaultAttempts}}},
		command.ClaimNext{WorkerID: "w", Limit: 3, LeaseMS: 1000},
		command.SetSchedule{Schedule: record.Schedule{Name: "s", EveryMS: 1000, Task: record.NewTask{Type: "mail", Params: []byte("1")}}},
		command.Tick{},
	} {
		entry := command.AppendEntry(nil, r.stamp, c)
		a := r.apply(c)
		b, err := twin.Apply(r.m.Index(), entry)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(a.Results, b.Results) || hashOf(r.m) != hashOf(twin) {
			t.Fatalf("command %d: one that was restored from its snapshot differs: %+v and %+v", i, a.Results, b.Results)
		}
	}
	events := r.m.Events(event.Query{After: newest, Limit: 1000}).Events
	if len(events) == 0 || events[0].Index <= newest.Index {
		t.Errorf("events behind %v: %v", newest, events)
	}
	for _, s := range r.m.Schedules() {
		if s.Name == "s" && s.Version <= old.Index() {
			t.Errorf("the new schedule has version %d, the backup's index was %d", s.Version, old.Index())
		}
	}
}

// Whatever else is applied gives up a restore that is under way: nothing is left of
// one whose leader died, as the next one begins with a tick.
func TestRestore_otherCommandsGiveItUp(t *testing.T) {
	t.Parallel()
	old := smallMachine(t)
	for _, c := range fullCommands() {
		if command.RowOf(c).Restore {
			continue
		}
		r := newRestorer(t)
		saved := r.graft(old)
		r.beginOf(len(saved))
		r.send(saved, 4096)
		if _, err := r.m.Apply(r.m.Index()+1, command.AppendEntry(nil, r.stamp, c)); err != nil {
			t.Fatal(err)
		}
		if left, ok := r.m.Restoring(); ok {
			t.Errorf("%v leaves %+v", command.KindOf(c), left)
		}
		hash := hashOf(r.m)
		if _, err := r.m.Apply(r.m.Index()+1, command.AppendEntry(nil, r.stamp, command.RestoreEnd{Begin: r.begin})); err != nil {
			t.Fatal(err)
		}
		r.m.header.Index--
		if hashOf(r.m) != hash {
			t.Errorf("%v: the end of a restore that was given up changed the state", command.KindOf(c))
		}
	}
	r := newRestorer(t)
	r.beginOf(1000)
	r.beginOf(2000)
	if got, _ := r.m.Restoring(); got.Bytes != 2000 || got.Begin != r.begin {
		t.Errorf("restoring %+v, want the second", got)
	}
	if err := r.m.JumpCounters(r.stamp.T); err != nil {
		t.Fatal(err)
	}
	if _, ok := r.m.Restoring(); ok {
		t.Error("a machine that a new cluster is made of waits for the rest of a restore")
	}
}

// A snapshot that is not whole, or not the one that was begun, or does not follow
// the cluster's own state, changes nothing.
func TestRestore_refused(t *testing.T) {
	t.Parallel()
	old := smallMachine(t)
	fresh := newRestorer(t)
	saved := fresh.graft(old)
	flipped := bytes.Clone(saved)
	flipped[len(flipped)/2] ^= 1
	end := func(r *restorer) command.Command { return command.RestoreEnd{Begin: r.begin} }
	for _, test := range []struct {
		name  string
		bytes []byte
		size  int // that is begun
		last  func(r *restorer) command.Command
	}{
		{"cut off", saved[:len(saved)-1], len(saved) - 1, end},
		{"more than was begun", saved, len(saved) - 1, end},
		{"less than was begun", saved, len(saved) + 1, end},
		{"bytes behind the end", append(bytes.Clone(saved), 0), len(saved) + 1, end},
		{"no chunks", nil, 0, end},
		{"another restore's end", saved, len(saved), func(r *restorer) command.Command { return command.RestoreEnd{Begin: r.begin - 1} }},
		{"another restore's chunk", saved, len(saved), func(r *restorer) command.Command {
			return command.RestoreChunk{Begin: r.begin - 1, Offset: uint64(len(saved))}
		}},
		{"a chunk again", saved, len(saved), func(r *restorer) command.Command { return r.chunk(saved, 0, 10) }},
		{"a chunk too far", saved, len(saved), func(r *restorer) command.Command { return command.RestoreChunk{Begin: r.begin, Offset: math.MaxUint64} }},
		{"no snapshot", nil, 100, func(r *restorer) command.Command {
			return command.RestoreChunk{Begin: r.begin, Data: []byte(strings.Repeat("x", 100))}
		}},
		{"a snapshot of the future", nil, 100, func(r *restorer) command.Command {
			return command.RestoreChunk{Begin: r.begin, Data: []byte(snapshot.Magic + "\x7f")}
		}},
		{"a damaged one", nil, len(saved), func(r *restorer) command.Command { return command.RestoreChunk{Begin: r.begin, Data: flipped} }},
	} {
		r := newRestorer(t)
		before := hashOf(r.m)
		r.beginOf(test.size)
		r.send(test.bytes, 1000)
		r.want(test.last(r), CodeInvalidRequest)
		if _, ok := r.m.Restoring(); ok {
			t.Errorf("%s: it is still under way", test.name)
		}
		r.want(command.RestoreEnd{Begin: r.begin}, CodeInvalidRequest)
		r.m.header.Index = 2
		if hashOf(r.m) != before {
			t.Errorf("%s: the state was changed", test.name)
		}
	}
	for name, change := range map[string]func(*record.Header){
		"older by U":              func(h *record.Header) { h.Stamp.U = math.MaxInt64 },
		"older by T":              func(h *record.Header) { h.Stamp.T = math.MaxInt64 },
		"ids that were given out": func(h *record.Header) { h.NextID = record.IDMax },
		"tokens that were":        func(h *record.Header) { h.NextToken = record.IDMax },
		"a lower level":           func(h *record.Header) { h.Level++ },
	} {
		r := newRestorer(t)
		r.beginOf(len(saved))
		r.send(saved, 1000)
		change(&r.m.header)
		if got := endRestore(r.m, command.RestoreEnd{Begin: r.begin}); got.Code != CodeInvalidRequest || r.m.Contents() != "" {
			t.Errorf("%s: code %q, and it holds %q", name, got.Code, r.m.Contents())
		}
	}
	full := newRestorer(t)
	full.apply(command.Submit{Tasks: []record.NewTask{{Type: "mail", Payload: []byte("x")}}})
	full.want(command.RestoreBegin{Bytes: 10}, CodeNotEmpty)
	if _, ok := full.m.Restoring(); ok {
		t.Error("a restore is under way in a cluster with a task")
	}
}

// A capture during a restore contains nothing of it, and an earlier one does not change
// when the restore ends.
func TestRestore_captures(t *testing.T) {
	t.Parallel()
	r := newRestorer(t)
	saved := r.graft(smallMachine(t))
	r.beginOf(len(saved))
	r.send(saved, 1000)
	before := r.m.Snapshot()
	want := before.Hash()
	r.want(command.RestoreEnd{Begin: r.begin}, "")
	r.apply(command.Submit{Tasks: []record.NewTask{{Type: "mail", Payload: []byte("x")}}})
	after := r.m.Snapshot()
	held := after.Hash()
	if before.Hash() != want || restore(t, written(t, before)).Contents() != "" {
		t.Error("the capture of before has changed")
	}
	before.Release()
	r.apply(command.ClaimNext{WorkerID: "w", Limit: 100})
	if after.Hash() != held {
		t.Error("the capture of after has changed with a later command")
	}
	after.Release()
}
