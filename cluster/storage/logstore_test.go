package storage

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

func TestLogStore_ReadsTheSameFromCacheAndDisk(t *testing.T) {
	t.Parallel()
	for name, cacheBytes := range map[string]int64{"cache": 0, "disk": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := openTestStores(t, t.TempDir(), Config{CacheBytesMax: cacheBytes})
			want := testEntries(1, 60)
			want[30].AppendedAt = time.Time{}
			want[31].Data = nil
			mustStore(t, b.Log, want...)
			wantLog(t, b.Log, want)
		})
	}
}

func TestLogStore_StoresNothing(t *testing.T) {
	t.Parallel()
	b := openTestStores(t, t.TempDir(), Config{})
	mustStore(t, b.Log)
	wantLog(t, b.Log, nil)
}

func TestLogStore_ObservesEachAppend(t *testing.T) {
	t.Parallel()
	observed := 0
	b := openTestStores(t, t.TempDir(), Config{ObserveFsync: func(took time.Duration) {
		if took <= 0 {
			t.Errorf("took %s", took)
		}
		observed++
	}})
	mustStore(t, b.Log, testEntries(1, 5)...)
	mustStore(t, b.Log, testEntry(6))
	if observed != 2 {
		t.Errorf("observed %d appends, want 2", observed)
	}
}

func TestLogStore_DeletesAtBothEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lo, hi   uint64
		want     []*raft.Log
		snapshot uint64 // that must exist for the rest to be usable
	}{
		"front":         {1, 400, testEntries(401, 500), 450},
		"end":           {101, 500, testEntries(1, 100), 0},
		"end, and past": {101, 9000, testEntries(1, 100), 0},
		"all":           {1, 500, nil, 0},
		"one":           {500, 500, testEntries(1, 499), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := t.TempDir()
			b := openTestStores(t, path, Config{})
			mustStore(t, b.Log, testEntries(1, 500)...)
			if err := b.Log.DeleteRange(c.lo, c.hi); err != nil {
				t.Fatal(err)
			}
			wantLog(t, b.Log, c.want)
			for i := c.lo; i <= min(c.hi, 500); i++ {
				if err := b.Log.GetLog(i, new(raft.Log)); !errors.Is(err, raft.ErrLogNotFound) {
					t.Fatalf("deleted entry %d: %v", i, err)
				}
			}
			if c.snapshot > 0 {
				takeSnapshot(t, b, c.snapshot, "state")
			}
			b.close(t)
			wantLog(t, openTestStores(t, path, Config{}).Log, c.want)
		})
	}
}

// A crash between lowering the tail and deleting leaves a log that is longer than
// necessary.
func TestLogStore_SurvivesACrashWhileDeletingItsEnd(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	b := openTestStores(t, path, Config{})
	mustStore(t, b.Log, testEntries(1, 10)...)
	if err := b.Log.lowerTail(5); err != nil {
		t.Fatal(err)
	}
	b.close(t)
	wantLog(t, openTestStores(t, path, Config{}).Log, testEntries(1, 10))
}

func TestLogStore_KnowsWhichGapsAreHarmless(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		logs     []*raft.Log
		snapshot uint64
		text     string // of the error, "" = none
	}{
		"behind a snapshot that was sent":  {append(testEntries(1, 5), testEntries(101, 110)...), 100, ""},
		"nothing yet behind one":           {testEntries(1, 5), 100, ""},
		"within what the snapshot has":     {append(testEntries(1, 5), testEntries(50, 110)...), 100, ""},
		"the front deleted":                {testEntries(50, 110), 100, ""},
		"above the snapshot":               {append(testEntries(1, 100), testEntries(103, 110)...), 100, "entries 101 to 102 are missing"},
		"between snapshot and log":         {testEntries(103, 110), 100, "entries 101 to 102 are missing"},
		"no snapshot, and the front gone":  {testEntries(3, 10), 0, "entries 1 to 2 are missing"},
		"a snapshot, but not a recent one": {append(testEntries(1, 5), testEntries(101, 110)...), 50, "entries 51 to 100 are missing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checker := logChecker{snapshotIndex: c.snapshot}
			sealed, _ := sealEntries(c.logs)
			var wrong []string
			for i, log := range c.logs {
				if err := checker.check(log.Index, sealed[i]); err != nil {
					wrong = append(wrong, err.Error())
				}
			}
			if text := strings.Join(wrong, "\n"); (text == "") != (c.text == "") || !strings.HasPrefix(text, c.text) {
				t.Errorf("got %q, want %q", text, c.text)
			}
		})
	}
}

func TestLogStore_FindsTheLastCommand(t *testing.T) {
	t.Parallel()
	b := openTestStores(t, t.TempDir(), Config{})
	types := []raft.LogType{
		1: raft.LogConfiguration, 2: raft.LogNoop, 3: raft.LogCommand, 4: raft.LogCommand,
		5: raft.LogNoop, 6: raft.LogBarrier, 7: raft.LogConfiguration, 8: raft.LogCommand, 9: raft.LogNoop,
	}
	for i := 1; i < len(types); i++ {
		log := testEntry(uint64(i))
		log.Type = types[i]
		mustStore(t, b.Log, log)
	}
	want := []uint64{0: 0, 1: 0, 2: 0, 3: 3, 4: 4, 5: 4, 6: 4, 7: 4, 8: 8, 9: 8, 10: 10}
	for i, w := range want {
		if got := b.Log.LastCommand(uint64(i)); got != w {
			t.Errorf("LastCommand(%d) = %d, want %d", i, got, w)
		}
	}
	if err := b.Log.DeleteRange(1, 5); err != nil {
		t.Fatal(err)
	}
	// Missing entries are in a snapshot, which was applied, so there is nothing to wait
	// for.
	for i, w := range []uint64{0, 0, 0, 0, 0, 0, 0, 0, 8, 8, 10} {
		if got := b.Log.LastCommand(uint64(i)); got != w {
			t.Errorf("after a deletion, LastCommand(%d) = %d, want %d", i, got, w)
		}
	}
}

func TestLogStore_KnowsTheBytesAfterAnIndex(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	b := openTestStores(t, path, Config{})
	const size, count = 10_000, 100
	for i := uint64(1); i <= count; i++ {
		mustStore(t, b.Log, &raft.Log{Index: i, Term: 1, Data: make([]byte, size)})
	}
	check := func(when string, l *Log, lo, hi uint64) {
		t.Helper()
		for i := lo; i <= hi; i++ {
			exact := int64(hi-i) * size
			if got := l.BytesAfter(i); got < exact || got > exact+logSizeStep+size {
				t.Errorf("%s: BytesAfter(%d) = %d, want %d or a little more", when, i, got, exact)
			}
		}
	}
	check("new", b.Log, 0, count)
	b.close(t)
	b = openTestStores(t, path, Config{})
	check("reopened", b.Log, 0, count)
	if err := b.Log.DeleteRange(81, count); err != nil {
		t.Fatal(err)
	}
	if got := b.Log.BytesAfter(0); got < 80*size-logSizeStep || got > 80*size+logSizeStep {
		t.Errorf("after deleting the end: BytesAfter(0) = %d", got)
	}
	if err := b.Log.DeleteRange(1, 40); err != nil {
		t.Fatal(err)
	}
	if got := b.Log.BytesAfter(60); got < 20*size-logSizeStep || got > 20*size+logSizeStep+size {
		t.Errorf("after deleting the front: BytesAfter(60) = %d", got)
	}
	if err := b.Log.DeleteRange(1, 80); err != nil {
		t.Fatal(err)
	}
	if got := b.Log.BytesAfter(80); got != 0 {
		t.Errorf("empty: BytesAfter(80) = %d", got)
	}
}

// Everything together under Raft: elect, append, snapshot, compact, start again.
func TestStores_CarryARaft(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "node")
	for round := 1; round <= 3; round++ {
		b := openTestStores(t, path, Config{})
		fsm := &countingFSM{}
		r := startRaftOnStores(t, b, fsm)
		for range 200 {
			if err := r.Apply([]byte("command"), time.Minute).Error(); err != nil {
				t.Fatal(err)
			}
		}
		if fsm.count.Load() != int64(200*round) {
			t.Errorf("round %d: applied %d, want %d", round, fsm.count.Load(), 200*round)
		}
		if err := r.Snapshot().Error(); err != nil {
			t.Fatal(err)
		}
		if first, _ := b.Log.FirstIndex(); first == 1 {
			t.Error("the log was not compacted")
		}
		if err := r.Shutdown().Error(); err != nil {
			t.Fatal(err)
		}
		b.close(t)
	}
}
