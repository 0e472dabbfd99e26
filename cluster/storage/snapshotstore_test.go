package storage

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/internal/proof"
	"github.com/claimq/claimq/internal/testwait"
)

func testConfiguration() raft.Configuration {
	return raft.Configuration{Servers: []raft.Server{
		{ID: "0198c0de-0000-7000-8000-000000000001", Address: "127.0.0.1:7401"},
		{ID: "0198c0de-0000-7000-8000-000000000002", Address: "127.0.0.1:7402", Suffrage: raft.Nonvoter},
	}}
}

func createSnapshot(t *testing.T, b storageBench, index uint64) raft.SnapshotSink {
	t.Helper()
	_, transport := raft.NewInmemTransport("")
	sink, err := b.Snapshots.Create(1, index, testEntry(index).Term, testConfiguration(), 2, transport)
	if err != nil {
		t.Fatal(err)
	}
	return sink
}

// takeSnapshot makes a snapshot and returns its folder.
func takeSnapshot(t *testing.T, b storageBench, index uint64, state string) string {
	t.Helper()
	sink := createSnapshot(t, b, index)
	if _, err := io.WriteString(sink, state); err != nil {
		t.Fatal(err)
	}
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(b.path, snapshotsFolder, sink.ID())
}

func TestSnapshots_ReadBackAsWritten(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	b := openTestStores(t, path, Config{})
	takeSnapshot(t, b, 10, "old")
	takeSnapshot(t, b, 20, "the state")
	b.close(t)
	b = openTestStores(t, path, Config{})
	list, err := b.Snapshots.List()
	if err != nil || len(list) != 1 {
		t.Fatalf("list: %v, %v: want the newest only", list, err)
	}
	meta, rc, err := b.Snapshots.Open(list[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	defer rc.Close()
	got, err := io.ReadAll(rc)
	if err != nil || string(got) != "the state" {
		t.Errorf("state: %q, %v", got, err)
	}
	for _, m := range []*raft.SnapshotMeta{meta, list[0]} {
		if m.Index != 20 || m.Term != 3 || m.ConfigurationIndex != 2 || m.Size != int64(len(got)) || len(m.Configuration.Servers) != 2 {
			t.Errorf("metadata: %+v", m)
		}
	}
	if has, err := b.HasState(); err != nil || !has {
		t.Errorf("has state: %v, %v", has, err)
	}
}

func TestSnapshots_AreNobodyElsesToRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "made-before")
	folder := filepath.Join(path, snapshotsFolder)
	for _, before := range []string{path, folder} { // at first without the folder, then as Raft makes it
		if err := os.MkdirAll(before, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(before, 0o755); err != nil {
			t.Fatal(err)
		}
		b := openTestStores(t, path, Config{})
		takeSnapshot(t, b, 10, "the state")
		b.close(t)
		info, err := os.Stat(folder)
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode != dataDirMode {
			t.Errorf("the folder of snapshots has mode %o, want %o", mode, dataDirMode)
		}
	}
}

func TestSnapshots_KeepTwo(t *testing.T) {
	t.Parallel()
	b := openTestStores(t, t.TempDir(), Config{})
	for i := uint64(1); i <= 12; i++ {
		takeSnapshot(t, b, i, "state")
	}
	testwait.Until(t, "two to be left", func() bool { return len(snapshotFolders(t, b)) == 2 })
	if list, err := b.Snapshots.List(); err != nil || len(list) != 1 || list[0].Index != 12 {
		t.Errorf("list: %v, %v", list, err)
	}
}

// snapshotFolders returns the contents of the folder of snapshots.
func snapshotFolders(t *testing.T, b storageBench) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(b.path, snapshotsFolder))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// A snapshot that is being removed step by step no longer counts, whenever the process
// ends, and nothing is left of it after the next start.
func TestSnapshots_GoBitByBit(t *testing.T) {
	t.Parallel()
	const large = 16384 * removeStep // takes ten minutes
	for name, drop := range map[string]func(b storageBench) string{
		"old": func(b storageBench) string {
			folder := takeSnapshot(t, b, 10, "older")
			largeFile(t, filepath.Join(folder, snapshotDataFile), large)
			takeSnapshot(t, b, 20, "old")
			takeSnapshot(t, b, 30, "newest")
			return folder
		},
		"given up": func(b storageBench) string {
			takeSnapshot(t, b, 20, "old")
			takeSnapshot(t, b, 30, "newest")
			sink := createSnapshot(t, b, 40)
			folder := filepath.Join(b.path, snapshotsFolder, sink.ID())
			largeFile(t, filepath.Join(folder+snapshotTmp, snapshotDataFile), large)
			if err := sink.Cancel(); err != nil {
				t.Fatal(err)
			}
			return folder
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := t.TempDir()
			b := openTestStores(t, path, Config{})
			folder := drop(b)
			left := filepath.Join(folder+snapshotGone, snapshotDataFile)
			testwait.Until(t, "the first bytes to go", func() bool { return sizeOf(t, left) < large })
			check := func(when string, folders int) {
				t.Helper()
				if got := snapshotFolders(t, b); len(got) != folders {
					t.Errorf("%s: the folder has %v", when, got)
				}
				if list, err := b.Snapshots.List(); err != nil || len(list) != 1 || list[0].Index != 30 {
					t.Errorf("%s: list: %v, %v", when, list, err)
				}
			}
			check("while it goes", 3)
			b.close(t)
			if sizeOf(t, left) <= 0 {
				t.Fatal("it was removed at once")
			}
			b = openTestStores(t, path, Config{})
			check("started again", 2)
		})
	}
}

// A snapshot that is being read, to be sent to a node that lags, stays whole until that
// ends.
func TestSnapshots_StayWhileTheyAreRead(t *testing.T) {
	t.Parallel()
	b := openTestStores(t, t.TempDir(), Config{})
	want := strings.Repeat("the state of everything ", removeStep/8)
	folder := takeSnapshot(t, b, 10, want)
	_, state, err := b.Snapshots.Open(filepath.Base(folder))
	if err != nil {
		t.Fatal(err)
	}
	for i := uint64(20); i <= 50; i += 10 {
		takeSnapshot(t, b, i, "newer")
	}
	testwait.Until(t, "all but it and two to go", func() bool { return len(snapshotFolders(t, b)) == 3 })
	if ok, err := fileExists(folder); !ok || err != nil {
		t.Errorf("it is being removed: %v", err)
	}
	if got, err := io.ReadAll(state); err != nil || string(got) != want {
		t.Errorf("read %d bytes, want %d, %v", len(got), len(want), err)
	}
	if err := state.Close(); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "it to go", func() bool { return len(snapshotFolders(t, b)) == 2 })
}

// A flipped bit anywhere in the newest snapshot, including its metadata, is noticed. Raft
// alone would use the older one, or the wrong index.
func TestSnapshots_NoticeFlippedBits(t *testing.T) {
	t.Parallel()
	b := openTestStores(t, t.TempDir(), Config{})
	takeSnapshot(t, b, 10, "older")
	dir := takeSnapshot(t, b, 20, "the state of everything")
	store := b.Snapshots
	for _, name := range []string{snapshotDataFile, snapshotMetaFile} {
		file := filepath.Join(dir, name)
		intact := mustRead(t, file)
		for bit := 0; bit < len(intact)*8; bit += proof.Count(7, 3) { // at least one of each byte
			mustWrite(t, file, flipBit(intact, bit))
			index, _, err := store.verifyNewest()
			if err != nil {
				wantError(t, err, ErrCorruptSnapshot, dir, "--join")
				continue
			}
			// Names of unused fields, such as Peers.
			if index != 20 || !wantState(t, store, filepath.Base(dir)) {
				t.Fatalf("%s, bit %d: not noticed", name, bit)
			}
		}
		mustWrite(t, file, intact)
	}
	if index, term, err := store.verifyNewest(); err != nil || index != 20 || term != 3 {
		t.Errorf("intact again: %d, %v", index, err)
	}
}

// wantState reports whether snapshot id has the contents of the test above.
func wantState(t *testing.T, s *Snapshots, id string) bool {
	t.Helper()
	meta, rc, err := s.open(id, true)
	if err != nil {
		return false
	}
	defer rc.Close()
	state, err := io.ReadAll(rc)
	want := testConfiguration()
	return err == nil && string(state) == "the state of everything" && meta.Index == 20 && meta.Term == 3 &&
		meta.Version == 1 && meta.ConfigurationIndex == 2 && meta.Configuration.Servers[1] == want.Servers[1]
}

func TestSnapshots_RefuseToFallBack(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(dir string) error{
		"state cut off":    func(dir string) error { return os.Truncate(filepath.Join(dir, snapshotDataFile), 3) },
		"state missing":    func(dir string) error { return os.Remove(filepath.Join(dir, snapshotDataFile)) },
		"metadata missing": func(dir string) error { return os.Remove(filepath.Join(dir, snapshotMetaFile)) },
		"metadata empty":   func(dir string) error { return os.Truncate(filepath.Join(dir, snapshotMetaFile), 0) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := t.TempDir()
			b := openTestStores(t, path, Config{})
			takeSnapshot(t, b, 10, "older")
			dir := takeSnapshot(t, b, 20, "newest")
			b.close(t)
			if err := damage(dir); err != nil {
				t.Fatal(err)
			}
			wantError(t, reopenError(t, path), ErrCorruptSnapshot, dir, "claimq cluster remove", "--join")
		})
	}
}

// While it runs, a node neither sends nor restores a damaged snapshot.
func TestSnapshots_EndTheProcessOnDamage(t *testing.T) {
	t.Parallel()
	var fatal error
	b := openTestStores(t, t.TempDir(), Config{Fatal: func(err error) { fatal = err }})
	dir := takeSnapshot(t, b, 20, "state")
	file := filepath.Join(dir, snapshotDataFile)
	mustWrite(t, file, flipBit(mustRead(t, file), 8*100))
	_, _, err := b.Snapshots.Open(filepath.Base(dir))
	wantError(t, err, ErrCorruptSnapshot, dir)
	if !errors.Is(fatal, ErrCorruptSnapshot) {
		t.Errorf("fatal got %v", fatal)
	}
}

// A snapshot that was replaced meanwhile is not damage.
func TestSnapshots_MayGoWhileTheyAreAskedFor(t *testing.T) {
	t.Parallel()
	b := openTestStores(t, t.TempDir(), Config{})
	if _, _, err := b.Snapshots.Open("3-20-1"); !errors.Is(err, os.ErrNotExist) || errors.Is(err, ErrCorruptSnapshot) {
		t.Errorf("got %v", err)
	}
}

func TestSnapshots_LeaveNothingUnfinished(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	b := openTestStores(t, path, Config{})
	sink := createSnapshot(t, b, 5)
	if err := sink.Cancel(); err != nil {
		t.Fatal(err)
	}
	createSnapshot(t, b, 6) // never finished: the process was killed
	b.close(t)

	b = openTestStores(t, path, Config{})
	entries, err := os.ReadDir(filepath.Join(path, snapshotsFolder))
	if err != nil || len(entries) != 0 {
		t.Errorf("folder has %v, %v", entries, err)
	}
	if has, err := b.HasState(); err != nil || has {
		t.Errorf("has state: %v, %v", has, err)
	}
}

// A snapshot that cannot be started does not affect another one that is being written: a
// node may be sent a snapshot while it takes its own.
func TestSnapshots_LeaveOthersUnfinished(t *testing.T) {
	t.Parallel()
	b := openTestStores(t, t.TempDir(), Config{})
	defer b.close(t)
	sink := createSnapshot(t, b, 5)
	_, transport := raft.NewInmemTransport("")
	if _, err := b.Snapshots.Create(2, 6, testEntry(6).Term, testConfiguration(), 2, transport); err == nil {
		t.Fatal("a snapshot of an unknown version is begun")
	}
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	if newest, err := b.Snapshots.List(); err != nil || len(newest) != 1 || newest[0].Index != 5 {
		t.Errorf("snapshots are %v, %v, want that of entry 5", newest, err)
	}
}

// countingFSM counts commands. Its snapshot is the count.
type countingFSM struct{ count atomic.Int64 }

func (f *countingFSM) Apply(*raft.Log) any { return f.count.Add(1) }

func (f *countingFSM) Snapshot() (raft.FSMSnapshot, error) {
	return countSnapshot(f.count.Load()), nil
}

func (f *countingFSM) Restore(r io.ReadCloser) error {
	defer r.Close()
	var n int64
	if err := binary.Read(r, binary.BigEndian, &n); err != nil {
		return err
	}
	f.count.Store(n)
	return nil
}

type countSnapshot int64

func (s countSnapshot) Persist(sink raft.SnapshotSink) error {
	if err := binary.Write(sink, binary.BigEndian, int64(s)); err != nil {
		return err
	}
	return sink.Close()
}

func (countSnapshot) Release() {}

// startRaftOnStores starts a single-node cluster over b, and returns once it leads and has
// applied its log.
func startRaftOnStores(t *testing.T, b storageBench, fsm raft.FSM) *raft.Raft {
	t.Helper()
	cfg := raft.DefaultConfig()
	cfg.LocalID = raft.ServerID(b.dir.Identity().UUID)
	cfg.HeartbeatTimeout, cfg.ElectionTimeout = 50*time.Millisecond, 50*time.Millisecond
	cfg.LeaderLeaseTimeout, cfg.CommitTimeout = 50*time.Millisecond, time.Millisecond
	cfg.TrailingLogs = 20
	cfg.Logger = hclog.NewNullLogger()
	addr, transport := raft.NewInmemTransport("")
	has, err := b.HasState()
	if err != nil {
		t.Fatal(err)
	}
	if !has {
		one := raft.Configuration{Servers: []raft.Server{{ID: cfg.LocalID, Address: addr}}}
		if err := raft.BootstrapCluster(cfg, b.Log, b.Stable, b.Snapshots, transport, one); err != nil {
			t.Fatal(err)
		}
	}
	r, err := raft.NewRaft(cfg, fsm, b.Log, b.Stable, b.Snapshots, transport)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Shutdown().Error() })
	select {
	case <-r.LeaderCh():
	case <-t.Context().Done():
		t.Fatal("no leader")
	}
	if err := r.Barrier(time.Minute).Error(); err != nil && !strings.Contains(err.Error(), "shutdown") {
		t.Fatal(err)
	}
	return r
}
