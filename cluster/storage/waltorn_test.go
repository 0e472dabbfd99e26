package storage

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/storage/disktest"
)

// tornUnit is the unit in which a loss of power keeps or loses parts of a write.
const tornUnit = 64

// walCrash is a loss of power during one write to a log: the files before and after it, and
// the last acknowledged entry.
type walCrash struct {
	before, after map[string][]byte
	last          uint64
}

func readFolder(t *testing.T, path string) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(path, "*"))
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string][]byte)
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(name)] = b
	}
	return files
}

// torn returns the name of the written segment, and its possible contents on disk: without
// one unit of the write, with only one, or with the first ones.
func (c walCrash) torn() (name string, contents [][]byte) {
	var units []int
	for n, after := range c.after {
		before := c.before[n]
		if !strings.HasSuffix(n, ".wal") || before == nil || bytes.Equal(before, after) {
			continue
		}
		name = n
		for at := 0; at < len(after); at += tornUnit {
			if !bytes.Equal(before[min(at, len(before)):min(at+tornUnit, len(before))], after[at:min(at+tornUnit, len(after))]) {
				units = append(units, at)
			}
		}
	}
	mix := func(written func(i int) bool) {
		b := make([]byte, len(c.after[name]))
		copy(b, c.before[name])
		for i, at := range units {
			if written(i) {
				copy(b[at:min(at+tornUnit, len(b))], c.after[name][at:])
			}
		}
		contents = append(contents, b)
	}
	for u := range units {
		mix(func(i int) bool { return i != u })
		mix(func(i int) bool { return i == u })
		mix(func(i int) bool { return i < u })
	}
	return name, contents
}

// check opens the log with that content of the segment: everything that was acknowledged is
// there, and more can be appended, twice.
func (c walCrash) check(t *testing.T, name string, content []byte) error {
	t.Helper()
	path := disktest.MemoryDir(t)
	for n, b := range c.before {
		if n == name {
			b = content
		}
		if err := os.WriteFile(filepath.Join(path, n), b, dataFileMode); err != nil {
			t.Fatal(err)
		}
	}
	want := tornEntries(c.last-3, c.last)
	var last uint64
	for range 3 {
		sealed, newest := sealEntries(want[len(want)-4:])
		_ = sealed
		w, _, err := openCheckedWAL(path, tornSegment, 0, logTail{index: newest.index, crc: newest.crc}, hclog.NewNullLogger())
		if err != nil {
			return err
		}
		if last, err = w.LastIndex(); err != nil {
			return err
		}
		want = tornEntries(last+1, last+4)
		sealed, _ = sealEntries(want)
		if err := errors.Join(w.StoreLogs(sealed), w.Close()); err != nil {
			return err
		}
	}
	return nil
}

const tornSegment = 4 << 10

func tornEntries(lo, hi uint64) []*raft.Log {
	logs := testEntries(lo, hi)
	for _, l := range logs {
		l.Data = bytes.Repeat([]byte{byte(l.Index)}, 100)
	}
	return logs
}

// A loss of power anywhere in an append loses nothing that was acknowledged before, and the
// log continues, even if the append ends a segment.
func TestWAL_PowerLostDuringAppend(t *testing.T) {
	t.Parallel()
	path := disktest.MemoryDir(t)
	if err := createWAL(path); err != nil {
		t.Fatal(err)
	}
	tried := 0
	for next := uint64(1); next < 80; next += 4 {
		c := walCrash{before: readFolder(t, path), last: next - 1}
		w, err := openWAL(path, tornSegment, 0, hclog.NewNullLogger())
		if err != nil {
			t.Fatal(err)
		}
		sealed, _ := sealEntries(tornEntries(next, next+3))
		if err := errors.Join(w.StoreLogs(sealed), w.Close()); err != nil {
			t.Fatal(err)
		}
		c.after = readFolder(t, path)
		if next == 1 {
			continue
		}
		name, contents := c.torn()
		for i, content := range contents {
			tried++
			if err := c.check(t, name, content); err != nil {
				t.Errorf("append after entry %d, torn in way %d of %d: %v", c.last, i, len(contents), err)
			}
		}
	}
	if tried == 0 {
		t.Error("nothing was torn")
	}
}

// The same for the end of a segment that is written when the log's end is cut off.
func TestWAL_PowerLostDuringDelete(t *testing.T) {
	t.Parallel()
	path := disktest.MemoryDir(t)
	if err := createWAL(path); err != nil {
		t.Fatal(err)
	}
	w, err := openWAL(path, tornSegment, 0, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	sealed, _ := sealEntries(tornEntries(1, 20))
	if err := w.StoreLogs(sealed); err != nil {
		t.Fatal(err)
	}
	c := walCrash{before: readFolder(t, path), last: 17}
	if err := w.DeleteRange(18, 20); err != nil {
		t.Fatal(err)
	}
	c.after = readFolder(t, path)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	name, contents := c.torn()
	if len(contents) == 0 {
		t.Error("nothing was torn")
	}
	for i, content := range contents {
		if err := c.check(t, name, content); err != nil {
			t.Errorf("torn in way %d of %d: %v", i, len(contents), err)
		}
	}
}

// A log that cannot be opened because the disk fails all writes is not damaged: the node
// must not be told to throw its data away.
func TestWAL_DiskThatTakesNoWriteIsNoDamage(t *testing.T) {
	t.Parallel()
	path := disktest.MemoryDir(t)
	if err := createWAL(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(path, walMetaFileName+".tmp"), dataDirMode); err != nil {
		t.Fatal(err)
	}
	_, _, err := openCheckedWAL(path, tornSegment, 0, logTail{}, hclog.NewNullLogger())
	if !errors.Is(err, ErrStorageFailed) || errors.Is(err, ErrCorruptLog) {
		t.Errorf("open: %v, want ErrStorageFailed", err)
	}
}
