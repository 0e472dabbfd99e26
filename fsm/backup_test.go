package fsm

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/snapshot"
)

// backupOf returns a backup of the machine.
func backupOf(t testing.TB, m *Machine) []byte {
	t.Helper()
	b := snapshot.NewBackup(m.Snapshot(), snapshot.BackupInfo{ClusterID: "c1", CreatedAt: 7, Version: "v1"})
	defer b.Release()
	var to bytes.Buffer
	n, err := b.WriteTo(&to)
	if err != nil || n != int64(to.Len()) {
		t.Fatalf("wrote %d of %d bytes: %v", n, to.Len(), err)
	}
	return to.Bytes()
}

func readBackupOf(b []byte) (*SavedBackup, error) {
	return ReadBackup(bytes.NewReader(b), int64(len(b)))
}

func TestBackup(t *testing.T) {
	t.Parallel()
	m := smallMachine(t)
	m.header.PageSecret = nil // which no backup has
	b := backupOf(t, m)
	if !bytes.Contains(b, snapshotOf(t, m)) {
		t.Error("the snapshot is not in it as it is")
	}
	saved, err := readBackupOf(b)
	if err != nil {
		t.Fatal(err)
	}
	want := snapshot.BackupInfo{ClusterID: "c1", Index: m.Index(), Level: m.Level(), CreatedAt: 7, Version: "v1"}
	if diff := cmp.Diff(want, saved.Info); diff != "" {
		t.Error(diff)
	}
	if hashOf(saved.machine) != hashOf(m) || saved.Stats().Counts != m.Stats(m.Stamp()).Counts {
		t.Error("another state was read")
	}
	if info, err := snapshot.CheckBackup(bytes.NewReader(b), int64(len(b))); err != nil || info != want {
		t.Errorf("check: %+v, %v", info, err)
	}
}

func TestReadBackup_EveryCorruptByteIsFound(t *testing.T) {
	t.Parallel()
	b := backupOf(t, smallMachine(t))
	for i := range b {
		for _, flip := range []byte{0x01, 0x80, 0xff} {
			bad := bytes.Clone(b)
			bad[i] ^= flip
			if saved, err := readBackupOf(bad); saved != nil || !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrUnknownCommand) && !errors.Is(err, ErrDevelopment) {
				t.Fatalf("byte %d of %d, bits %#x flipped: %v, error %v", i, len(b), flip, saved != nil, err)
			}
			if _, err := snapshot.CheckBackup(bytes.NewReader(bad), int64(len(bad))); err == nil {
				t.Fatalf("byte %d of %d, bits %#x flipped: its checksum is right", i, len(b), flip)
			}
		}
	}
}

func TestReadBackup_EveryTruncationIsFound(t *testing.T) {
	t.Parallel()
	b := backupOf(t, smallMachine(t))
	for n := range b {
		if saved, err := readBackupOf(b[:n]); saved != nil || !errors.Is(err, ErrCorrupt) {
			t.Fatalf("%d of %d bytes: %v, error %v; want ErrCorrupt", n, len(b), saved != nil, err)
		}
	}
	if _, err := readBackupOf(append(bytes.Clone(b), 0)); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a byte too many: error %v, want ErrCorrupt", err)
	}
}

// sealed makes the checksum of a backup right again.
func sealed(b []byte) []byte {
	sum := sha256.Sum256(b[:len(b)-sha256.Size])
	return append(bytes.Clone(b[:len(b)-sha256.Size]), sum[:]...)
}

func TestReadBackup_Refuses(t *testing.T) {
	t.Parallel()
	m := smallMachine(t)
	good := backupOf(t, m)
	withInfo := func(change func(*snapshot.BackupInfo)) []byte {
		info := snapshot.BackupInfo{ClusterID: "c1", Index: m.Index(), Level: m.Level()}
		change(&info)
		state := snapshotOf(t, m)
		b := append(snapshot.AppendBackupHead(nil, &info), state...)
		b = binary.LittleEndian.AppendUint64(b, uint64(len(state)))
		return sealed(append(b, make([]byte, sha256.Size)...))
	}
	newer := bytes.Clone(good)
	newer[len(snapshot.BackupMagic)]++
	older := bytes.Clone(good)
	older[len(snapshot.BackupMagic)] = 1
	for _, test := range []struct {
		name  string
		bytes []byte
		want  error
		names string
	}{
		{"nothing", nil, ErrCorrupt, "cut off"},
		{"something else", []byte("PK\x03\x04 a zip, or what else it may be"), ErrCorrupt, "not a backup of claimq"},
		{"a node's snapshot", snapshotOf(t, m), ErrCorrupt, "snapshot save"},
		{"a folder's snapshot", []byte("cqsnap1\n and so on, and so on"), ErrCorrupt, "snapshot save"},
		{"a newer format", newer, ErrUnknownCommand, "format 15"},
		{"a development build's", older, ErrDevelopment, "format 1"},
		{"a newer feature level", withInfo(func(i *snapshot.BackupInfo) { i.Level = record.FeatureLevel + 1 }), ErrUnknownCommand, "feature level"},
		{"another index than its state", withInfo(func(i *snapshot.BackupInfo) { i.Index++ }), ErrCorrupt, "another state"},
		{"another level than its state", withInfo(func(i *snapshot.BackupInfo) { i.Level-- }), ErrCorrupt, "another state"},
	} {
		saved, err := readBackupOf(test.bytes)
		if saved != nil || !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.names) {
			t.Errorf("%s: %v, error %v; want %v that names %q", test.name, saved != nil, err, test.want, test.names)
		}
	}
	if _, err := readBackupOf(withInfo(func(*snapshot.BackupInfo) {})); err != nil {
		t.Errorf("one that was made as those: %v", err)
	}
}

// grafted returns the machine of a backup of m that is grafted onto g.
func grafted(t *testing.T, m *Machine, g Ground) *Machine {
	t.Helper()
	saved, err := readBackupOf(backupOf(t, m))
	if err != nil {
		t.Fatal(err)
	}
	s, err := saved.Graft(g)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Release()
	got := restore(t, written(t, s))
	if err := got.check(); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestGraft(t *testing.T) {
	t.Parallel()
	m := smallMachine(t)
	nodes := []record.NodeRecord{{UUID: "u", NodeID: "new"}}
	old := m.header
	aheadTo := func(place uint64) uint64 { return place - old.Index }
	for _, test := range []struct {
		name string
		g    Ground
		want record.Header
	}{
		{
			"onto a young cluster",
			Ground{Stamp: record.Stamp{U: 1, T: 1}, Level: 1, NextID: 1, NextToken: 1},
			record.Header{Ahead: aheadTo(uint64(old.Stamp.T) * 1000), Stamp: old.Stamp, Level: old.Level, NextID: uint64(old.Stamp.T) * 1000, NextToken: uint64(old.Stamp.T) * 1000},
		},
		{
			"onto an old cluster",
			Ground{Stamp: record.Stamp{U: old.Stamp.U + 1e6, T: 1_790_000_000_000}, Level: record.FeatureLevel, NextID: 1 << 50, NextToken: 5},
			record.Header{Ahead: aheadTo(1_790_000_000_000_000), Stamp: record.Stamp{U: old.Stamp.U + 1e6, T: 1_790_000_000_000}, Level: record.FeatureLevel, NextID: 1_790_000_000_000_000, NextToken: 1_790_000_000_000_000},
		},
		{
			"onto one whose clock is far off",
			Ground{Stamp: record.Stamp{T: 1 << 52}, NextID: 1 << 51, NextToken: 1},
			record.Header{Ahead: CounterJump + 1, Stamp: record.Stamp{U: old.Stamp.U, T: 1 << 52}, Level: old.Level, NextID: 1 << 51, NextToken: old.NextToken + CounterJump},
		},
	} {
		test.g.Nodes = nodes
		got := grafted(t, m, test.g)
		test.want.Index, test.want.NextRequest, test.want.Chain, test.want.Defaults = old.Index, old.NextRequest, old.Chain, old.Defaults
		if diff := cmp.Diff(test.want, got.header); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
		if diff := cmp.Diff(m.trail.Header, got.trail.Header); diff != "" {
			t.Errorf("%s: the trail: %s", test.name, diff)
		}
		if diff := cmp.Diff(nodes, got.Nodes()); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
		sameLeft(t, test.name, m, got)
	}
}

// A cluster that was restored once has counters that go by the time already. One
// backup of it, restored again and again, gives nothing out twice either.
func TestGraft_againAndAgain(t *testing.T) {
	t.Parallel()
	m := smallMachine(t)
	young := func(t int64) Ground {
		return Ground{Stamp: record.Stamp{U: 1, T: t}, Level: record.FeatureLevel, NextID: 1, NextToken: 1}
	}
	restored := grafted(t, m, young(1_790_000_000_000))
	const hour = 3_600_000
	next := restored.header
	for i := range int64(5) {
		got := grafted(t, restored, young(1_790_000_000_000+(i+1)*hour)).header
		for what, pair := range map[string][2]uint64{"id": {got.NextID, next.NextID}, "token": {got.NextToken, next.NextToken}, "place": {got.Moment(), next.Moment()}} {
			// What was restored before gave out less than one in a microsecond.
			if pair[0] < pair[1]+hour*1000 {
				t.Errorf("restore %d: the next %s is %d, after %d an hour before", i, what, pair[0], pair[1])
			}
		}
		next = got
	}
	for i := range int64(3) {
		again := grafted(t, restored, young(1_790_000_000_000))
		if err := again.JumpCounters(1_790_000_000_000 + (i+10)*hour); err != nil {
			t.Fatal(err)
		}
		if h := again.header; h.NextID < next.NextID+hour*1000 || h.NextToken < next.NextToken+hour*1000 || h.Moment() < next.Moment()+hour*1000 {
			t.Errorf("recovery %d: %d, %d and %d, after %d, %d and %d", i, h.NextID, h.NextToken, h.Moment(), next.NextID, next.NextToken, next.Moment())
		}
		next = again.header
	}
}

// sameLeft makes sure that everything that lives by U has as long to live in got
// as in m.
func sameLeft(t *testing.T, name string, m, got *Machine) {
	t.Helper()
	type left struct {
		kind string
		id   uint64
		ms   int64
	}
	of := func(m *Machine) (all []left) {
		for id, task := range m.tasks.All() {
			if task.Status == record.StatusClaimed {
				all = append(all, left{"claim", id, task.LeaseEndU - m.header.Stamp.U})
			}
			if record.IsFinalizing(task) {
				all = append(all, left{"finalization", id, task.Parent().Finalization.EndU - m.header.Stamp.U})
			}
		}
		for seq, r := range m.requests.table.All() {
			if r.Live == 0 {
				all = append(all, left{"request", seq, r.ForgetU - m.header.Stamp.U})
			}
		}
		for id, g := range m.gone.table.All() {
			all = append(all, left{"removed", id, g.ForgetU - m.header.Stamp.U})
		}
		return all
	}
	want := of(m)
	kinds := map[string]bool{}
	for _, l := range want {
		kinds[l.kind] = true
	}
	if len(kinds) != 4 {
		t.Errorf("%s: only %v live by U", name, kinds)
	}
	if diff := cmp.Diff(want, of(got), cmp.AllowUnexported(left{})); diff != "" {
		t.Errorf("%s: %s", name, diff)
	}
}

func TestGraft_CountersUsedUp(t *testing.T) {
	t.Parallel()
	saved, err := readBackupOf(backupOf(t, smallMachine(t)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := saved.Graft(Ground{NextID: record.IDMax - 5, NextToken: 1}); !errors.Is(err, ErrCountersUsedUp) {
		t.Errorf("error %v, want ErrCountersUsedUp", err)
	}
}

// Backups of every feature level that there ever was come to life.
func TestGraft_OldSnapshots(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(goldenDir, "snapshot*.bin"))
	if err != nil || len(files) < 2 {
		t.Fatalf("%d golden snapshots, %v", len(files), err)
	}
	for _, file := range files {
		saved, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m := restore(t, saved)
		got := grafted(t, m, Ground{Stamp: record.Stamp{U: 1 << 40, T: m.Stamp().T + 1}, Level: record.FeatureLevel, NextID: 1, NextToken: 1})
		stamp := record.Stamp{U: 1<<40 + 1, T: m.Stamp().T + 2}
		entry := command.AppendEntry(nil, stamp, command.Submit{Tasks: []record.NewTask{{Type: "mail", Payload: []byte("x")}}}, command.Tick{})
		applied, err := got.Apply(got.Index()+1, entry)
		if err != nil {
			t.Fatal(err)
		}
		if id := applied.Results[0].Submitted[0].Task.ID; id < m.header.NextID+CounterJump {
			t.Errorf("level %d: a task got the id %d", m.Level(), id)
		}
		if err := got.check(); err != nil {
			t.Error(err)
		}
	}
}

func TestContents(t *testing.T) {
	t.Parallel()
	if got := New().Contents(); got != "" {
		t.Errorf("a new machine holds %q", got)
	}
	m := New()
	apply := func(c command.Command) {
		t.Helper()
		if _, err := m.Apply(m.Index()+1, command.AppendEntry(nil, m.Stamp(), c)); err != nil {
			t.Fatal(err)
		}
	}
	apply(command.SetLevel{Level: record.FeatureLevel})
	apply(command.SetNode{Node: record.NodeRecord{UUID: "u", NodeID: "n"}})
	if got := m.Contents(); got != "" {
		t.Errorf("a machine with a node holds %q", got)
	}
	apply(command.Submit{Tasks: []record.NewTask{{Type: "mail", Payload: []byte("x")}}})
	if got := m.Contents(); got != "1 task" {
		t.Errorf("a machine with a task holds %q", got)
	}
	apply(command.Cancel{ID: 1})
	apply(command.Delete{ID: 1})
	if got := m.Contents(); got != "" {
		t.Errorf("a machine whose task was deleted holds %q", got)
	}
}
