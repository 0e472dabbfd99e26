package storage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"
)

// corruptibleLog is a real log whose contents lead to pages of every kind: long and short
// entries, many of them, a deleted front, a rewritten end, term and vote.
type corruptibleLog struct {
	path  string // data folder
	bytes []byte // raft.db
	tail  logTail
	want  []*raft.Log
}

func newCorruptibleLog(t *testing.T) corruptibleLog {
	t.Helper()
	path := t.TempDir()
	b := openBoltStores(t, path, Config{})
	if err := b.Stable.SetUint64([]byte("CurrentTerm"), 7); err != nil {
		t.Fatal(err)
	}
	if err := b.Stable.Set([]byte("LastVoteCand"), []byte("0198c0de-0000-7000-8000-000000000001")); err != nil {
		t.Fatal(err)
	}
	for i := uint64(1); i <= 100; i += 20 {
		mustStore(t, b.Log, testEntries(i, i+19)...)
	}
	long := testEntry(101)
	long.Data = make([]byte, 20_000)
	mustStore(t, b.Log, long)
	if err := b.Log.DeleteRange(91, 101); err != nil {
		t.Fatal(err)
	}
	for i := uint64(91); i <= 100; i++ {
		mustStore(t, b.Log, testEntry(i))
	}
	mustStore(t, b.Log, long)
	tail := b.tail.value
	b.close(t)
	return corruptibleLog{
		path:  path,
		tail:  tail,
		bytes: mustRead(t, filepath.Join(path, logFileName)),
		want:  append(testEntries(1, 100), long),
	}
}

// open opens the stores of l over content instead of raft.db.
func (l corruptibleLog) open(t *testing.T, d *Dir, content []byte) (*Stores, error) {
	t.Helper()
	mustWrite(t, filepath.Join(l.path, logFileName), content)
	return Open(d, Config{Fatal: testFatal(t)})
}

// wantIntact checks that s reads back what was written.
func (l corruptibleLog) wantIntact(t *testing.T, s *Stores) {
	t.Helper()
	wantLog(t, s.Log, l.want)
	term, err := s.Stable.GetUint64([]byte("CurrentTerm"))
	if err != nil || term != 7 {
		t.Errorf("term: %d, %v", term, err)
	}
	vote, err := s.Stable.Get([]byte("LastVoteCand"))
	if err != nil || string(vote) != "0198c0de-0000-7000-8000-000000000001" {
		t.Errorf("vote: %q, %v", vote, err)
	}
}

// readAll checks all used parts of the file and returns it.
func (l corruptibleLog) readAll(t *testing.T) *boltFile {
	t.Helper()
	file, err := readBoltFile(bytes.NewReader(l.bytes), int64(len(l.bytes)))
	if err != nil {
		t.Fatal(err)
	}
	checker := logChecker{tail: l.tail}
	if err := checker.run(file); err != nil {
		t.Fatal(err)
	}
	return file
}

// One flipped bit anywhere either prevents the node from starting, or changes nothing.
func TestLog_NoticesFlippedBits(t *testing.T) {
	t.Parallel()
	l := newCorruptibleLog(t)
	d := mustOpenDataDir(t, l.path)
	seen := append(l.readAll(t).seen, make([]bool, len(l.bytes)/os.Getpagesize())...)
	refused, intact, step := 0, 0, 97
	if testing.Short() {
		step *= 4
	}
	for at := 0; at < len(l.bytes); at += step {
		content := flipBit(l.bytes, at*8+at%8)
		if _, err := checkLogIn(bytes.NewReader(content), int64(len(content)), 0, l.tail); err != nil {
			refused++
			continue
		}
		intact++
		// Some of the pages that are never read represent all of them.
		if !seen[at/os.Getpagesize()] && intact%20 != 0 {
			continue
		}
		s, err := l.open(t, d, content)
		if err != nil {
			t.Fatalf("at byte %d, bit %d: %v", at, at%8, err)
		}
		l.wantIntact(t, s)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Fatalf("at byte %d, bit %d", at, at%8)
		}
	}
	if refused == 0 || intact == 0 {
		t.Errorf("%d refused, %d without effect: the test does not look at both", refused, intact)
	}
	t.Logf("%d bytes: %d flips refused, %d without effect", len(l.bytes), refused, intact)
}

// The page headers and element tables have no checksum, but every bit of them is
// determined.
func TestLog_NoticesEachFlippedBitOfItsStructure(t *testing.T) {
	t.Parallel()
	l := newCorruptibleLog(t)
	check := func(content []byte) error {
		_, err := checkLogIn(bytes.NewReader(content), int64(len(content)), 0, l.tail)
		return err
	}
	file := l.readAll(t)
	flips := 0
	content := bytes.Clone(l.bytes)
	for page, used := range file.seen {
		start := page * int(file.pageSize)
		if page > 1 && (!used || binary.NativeEndian.Uint64(l.bytes[start:]) != uint64(page)) {
			continue // a free page, or the overflow of one
		}
		table := 80 // of a meta page: all of it
		if page > 1 {
			table = min(80, boltHeaderSize+boltElementSize*int(binary.NativeEndian.Uint16(content[start+10:])))
		}
		for bit := start * 8; bit < (start+table)*8; bit += 11 {
			content[bit/8] ^= 1 << (bit % 8)
			if err := check(content); err == nil {
				t.Errorf("page %d, bit %d: not noticed", page, bit-start*8)
			}
			content[bit/8] ^= 1 << (bit % 8)
			flips++
		}
	}
	if err := check(content); err != nil || flips < 300 {
		t.Errorf("%d flips; intact again: %v", flips, err)
	}
}

// If bbolt's newest meta page is damaged, bbolt alone continues with the previous
// transaction, and the latest acknowledged entries are gone.
func TestLog_DoesNotFallBackToAnOlderTransaction(t *testing.T) {
	t.Parallel()
	l := newCorruptibleLog(t)
	d := mustOpenDataDir(t, l.path)
	for _, at := range []int{16 + 8, 16 + 60, os.Getpagesize() + 16 + 8, os.Getpagesize() + 16 + 60} {
		_, err := l.open(t, d, flipBit(l.bytes, at*8))
		wantError(t, err, ErrCorruptLog, "meta page", "claimq cluster remove", l.path)
	}
}

func TestLog_NoticesThatItIsCutOff(t *testing.T) {
	t.Parallel()
	l := newCorruptibleLog(t)
	d := mustOpenDataDir(t, l.path)
	for _, size := range []int{0, 1, 4096, 8192, 8192 + 17, len(l.bytes) / 2} {
		_, err := l.open(t, d, l.bytes[:size])
		wantError(t, err, ErrCorruptLog, logFileName)
	}
}

// A complete older log is intact in itself; only the tail shows it.
func TestLog_NoticesThatItIsAnOlderOne(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	b := openBoltStores(t, path, Config{})
	mustStore(t, b.Log, testEntries(1, 10)...)
	b.close(t)
	file := filepath.Join(path, logFileName)
	old := mustRead(t, file)

	b = openBoltStores(t, path, Config{})
	mustStore(t, b.Log, testEntry(11))
	b.close(t)
	newer := mustRead(t, file)
	mustWrite(t, file, old)
	wantError(t, reopenError(t, path), ErrCorruptLog, "ends at entry 10", "11 had been written")

	// The same length, but the last entry has another term.
	mustWrite(t, file, newer)
	b = openBoltStores(t, path, Config{})
	if err := b.Log.DeleteRange(11, 11); err != nil {
		t.Fatal(err)
	}
	replaced := testEntry(11)
	replaced.Term++
	mustStore(t, b.Log, replaced)
	b.close(t)
	mustWrite(t, file, newer)
	wantError(t, reopenError(t, path), ErrCorruptLog, "entry 11 is an older one")
}

func TestLog_NoticesEachFlippedBitOfItsTail(t *testing.T) {
	t.Parallel()
	l := newCorruptibleLog(t)
	file := filepath.Join(l.path, tailFileName)
	intact := mustRead(t, file)
	for bit := range len(intact) * 8 {
		if tail, err := readTail(bytes.NewReader(flipBit(intact, bit))); err == nil {
			t.Fatalf("bit %d: read %+v", bit, tail)
		}
	}
	mustWrite(t, file, flipBit(intact, 100))
	wantError(t, reopenError(t, l.path), ErrCorruptLog, tailFileName)
}

// A page that rots while the process runs ends the process at the next read.
func TestLog_EndsTheProcessOnDamageWhileRunning(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	var fatal error
	b := openBoltStores(t, path, Config{CacheBytesMax: 1, Fatal: func(err error) { fatal = err }})
	mustStore(t, b.Log, testEntries(1, 5)...)
	rot(t, b, 3)
	err := b.Log.GetLog(3, new(raft.Log))
	wantError(t, err, ErrCorruptLog, "entry 3", "checksum", logFileName)
	if !errors.Is(fatal, ErrCorruptLog) {
		t.Errorf("fatal got %v", fatal)
	}
	wantError(t, b.Log.StoreLogs(testEntries(6, 6)), ErrStorageFailed)
}

// rot changes the entry at index below the checksums.
func rot(t *testing.T, b storageBench, index uint64) {
	t.Helper()
	var log raft.Log
	if err := b.bolt.GetLog(index, &log); err != nil {
		t.Fatal(err)
	}
	log.Data[0] ^= 1
	if err := b.bolt.StoreLog(&log); err != nil {
		t.Fatal(err)
	}
}

func TestStable_NoticesDamage(t *testing.T) {
	t.Parallel()
	var fatal error
	b := openBoltStores(t, t.TempDir(), Config{Fatal: func(err error) { fatal = err }})
	if err := b.Stable.SetUint64([]byte("CurrentTerm"), 7); err != nil {
		t.Fatal(err)
	}
	sealed, err := b.bolt.Get([]byte("CurrentTerm"))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.bolt.Set([]byte("CurrentTerm"), flipBit(sealed, 56)); err != nil {
		t.Fatal(err)
	}
	_, err = b.Stable.GetUint64([]byte("CurrentTerm"))
	wantError(t, err, ErrCorruptLog, "CurrentTerm", "checksum")
	if !errors.Is(fatal, ErrCorruptLog) {
		t.Errorf("fatal got %v", fatal)
	}
}
