package storage

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/storage/disktest"
	"github.com/claimq/claimq/internal/proof"
)

// corruptibleVotes is a folder whose term and vote were written several times.
type corruptibleVotes struct {
	path  string // data folder
	bytes []byte // raft.db
}

const votedFor = "0198c0de-0000-7000-8000-000000000001"

func newCorruptibleVotes(t *testing.T) corruptibleVotes {
	t.Helper()
	path := disktest.MemoryDir(t)
	b := openTestStores(t, path, Config{})
	for term := uint64(5); term <= 7; term++ {
		if err := errors.Join(b.Stable.SetUint64([]byte("CurrentTerm"), term), b.Stable.SetUint64([]byte("LastVoteTerm"), term), b.Stable.Set([]byte("LastVoteCand"), []byte(votedFor))); err != nil {
			t.Fatal(err)
		}
	}
	b.close(t)
	return corruptibleVotes{path: path, bytes: mustRead(t, filepath.Join(path, logFileName))}
}

// open opens the stores over content instead of raft.db.
func (v corruptibleVotes) open(t *testing.T, d *Dir, content []byte) (*Stores, error) {
	t.Helper()
	mustWrite(t, filepath.Join(v.path, logFileName), content)
	return Open(d, Config{Fatal: testFatal(t)})
}

// One flipped bit anywhere either prevents the node from starting, or changes nothing: all bits
// of the meta pages, and of what they lead to, are noticed.
func TestVotes_NoticeFlippedBits(t *testing.T) {
	t.Parallel()
	v := newCorruptibleVotes(t)
	check := func(content []byte) error { return checkVotesIn(bytes.NewReader(content), int64(len(content))) }
	root, err := readBoltRoot(bytes.NewReader(v.bytes), int64(len(v.bytes)))
	if err != nil {
		t.Fatal(err)
	}
	used, err := boltElements(root, boltBucketElement, func(_, _ []byte) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	at, page := bytes.Index(v.bytes, root), len(root)
	refused, intact := 0, 0
	content := bytes.Clone(v.bytes)
	each := proof.Count(15, 1) // of the bits that do not matter
	for bit := range len(content) * 8 {
		matters := bit/8%page < boltHeaderSize+boltMetaSize && bit/8 < 2*page || at <= bit/8 && bit/8 < at+used
		if !matters && bit%each > 0 {
			continue
		}
		content[bit/8] ^= 1 << (bit % 8)
		switch err := check(content); {
		case err != nil:
			refused++
		case matters:
			t.Errorf("byte %d, bit %d: not noticed", bit/8, bit%8)
		default:
			intact++
		}
		content[bit/8] ^= 1 << (bit % 8)
	}
	if err := check(content); err != nil || refused == 0 || intact == 0 {
		t.Errorf("%d flips are refused, %d without effect; intact again: %v", refused, intact, err)
	}
	d := mustOpenDataDir(t, v.path)
	free := len(content) - 1 // of a page that nothing leads to
	s, err := v.open(t, d, flipBit(content, free*8))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	term, termErr := s.Stable.GetUint64([]byte("CurrentTerm"))
	vote, voteErr := s.Stable.Get([]byte("LastVoteCand"))
	if termErr != nil || voteErr != nil || term != 7 || string(vote) != votedFor {
		t.Errorf("term %d, %v; vote %q, %v", term, termErr, vote, voteErr)
	}
}

// If bbolt's newest meta page is damaged, bbolt alone continues with the previous
// transaction, and the latest vote is gone.
func TestVotes_DoNotFallBackToAnOlderTransaction(t *testing.T) {
	t.Parallel()
	v := newCorruptibleVotes(t)
	d := mustOpenDataDir(t, v.path)
	for _, at := range []int{16 + 8, 16 + 60, os.Getpagesize() + 16 + 8, os.Getpagesize() + 16 + 60} {
		_, err := v.open(t, d, flipBit(v.bytes, at*8))
		wantError(t, err, ErrCorruptLog, "meta page", "claimq cluster remove", v.path)
	}
}

func TestVotes_NoticeThatTheirFileIsCutOff(t *testing.T) {
	t.Parallel()
	v := newCorruptibleVotes(t)
	d := mustOpenDataDir(t, v.path)
	for _, size := range []int{0, 1, 4096, 8192, 8192 + 17, len(v.bytes) / 2} {
		_, err := v.open(t, d, v.bytes[:size])
		wantError(t, err, ErrCorruptLog, logFileName)
	}
}

// A candidate as long as an address can be is still where the check looks for it.
func TestVotes_LongCandidate(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	b := openTestStores(t, path, Config{})
	candidate := bytes.Repeat([]byte("a"), 253+6)
	if err := errors.Join(b.Stable.SetUint64([]byte("LastVoteTerm"), 7), b.Stable.Set([]byte("LastVoteCand"), candidate)); err != nil {
		t.Fatal(err)
	}
	b.close(t)
	b = openTestStores(t, path, Config{})
	if got, err := b.Stable.Get([]byte("LastVoteCand")); err != nil || !bytes.Equal(got, candidate) {
		t.Errorf("vote %q, %v", got, err)
	}
}

// A complete older log is intact in itself; only the tail shows it.
func TestLog_NoticesThatItIsAnOlderOne(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	wal := filepath.Join(path, walDirName)
	write := func(do func(b storageBench)) (kept string) {
		b := openTestStores(t, path, Config{})
		do(b)
		b.close(t)
		kept = filepath.Join(t.TempDir(), "kept")
		if err := os.CopyFS(kept, os.DirFS(wal)); err != nil {
			t.Fatal(err)
		}
		return kept
	}
	putBack := func(kept string) {
		if err := errors.Join(os.RemoveAll(wal), os.CopyFS(wal, os.DirFS(kept))); err != nil {
			t.Fatal(err)
		}
	}
	old := write(func(b storageBench) { mustStore(t, b.Log, testEntries(1, 10)...) })
	newer := write(func(b storageBench) { mustStore(t, b.Log, testEntry(11)) })
	putBack(old)
	wantError(t, reopenError(t, path), ErrCorruptLog, "ends at entry 10", "11 had been written")

	// The same length, but the last entry has another term.
	putBack(newer)
	write(func(b storageBench) {
		mustDelete(t, b.Log, 11, 11)
		replaced := testEntry(11)
		replaced.Term++
		mustStore(t, b.Log, replaced)
	})
	putBack(newer)
	wantError(t, reopenError(t, path), ErrCorruptLog, "entry 11 is an older one")
}

func TestLog_NoticesEachFlippedBitOfItsTail(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	b := openTestStores(t, path, Config{})
	mustStore(t, b.Log, testEntries(1, 10)...)
	b.close(t)
	file := filepath.Join(path, tailFileName)
	intact := mustRead(t, file)
	for bit := range len(intact) * 8 {
		if tail, err := readTail(bytes.NewReader(flipBit(intact, bit))); err == nil {
			t.Fatalf("bit %d: read %+v", bit, tail)
		}
	}
	mustWrite(t, file, flipBit(intact, 100))
	wantError(t, reopenError(t, path), ErrCorruptLog, tailFileName)
}

// An entry that rots while the process runs ends the process at the next read.
func TestLog_EndsTheProcessOnDamageWhileRunning(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	var fatal error
	b := openTestStores(t, path, Config{CacheBytesMax: 1, Fatal: func(err error) { fatal = err }})
	mustStore(t, b.Log, testEntries(1, 5)...)
	rot(t, path, testEntry(3).Data)
	err := b.Log.GetLog(3, new(raft.Log))
	wantError(t, err, ErrCorruptLog, "entry 3", "checksum", walDirName)
	if !errors.Is(fatal, ErrCorruptLog) {
		t.Errorf("fatal got %v", fatal)
	}
	wantError(t, b.Log.StoreLogs(testEntries(6, 6)), ErrStorageFailed)
}

// rot flips a bit of data where the log has it on disk.
func rot(t *testing.T, path string, data []byte) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(path, walDirName, "*.wal"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if at := bytes.Index(mustRead(t, file), data); at >= 0 {
			f, err := os.OpenFile(file, os.O_RDWR, dataFileMode)
			if err == nil {
				_, err = f.WriteAt([]byte{data[0] ^ 1}, int64(at))
			}
			if err := errors.Join(err, f.Close()); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("no file has %q", data)
}

func TestStable_NoticesDamage(t *testing.T) {
	t.Parallel()
	var fatal error
	b := openTestStores(t, t.TempDir(), Config{Fatal: func(err error) { fatal = err }})
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
