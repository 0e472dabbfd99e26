package storage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
)

// Raft's term and vote are in a bbolt file, which is read here page by page without trusting
// it: the library maps the file and follows its offsets, so that a single flipped bit can end
// the process in a goroutine of the library's, hang it, or hide a vote.
//
// Only the two newest transactions' meta pages have checksums. What they lead to is so little
// that bbolt packs it into one page, which leaves no freedom: each element lies exactly after
// the previous one, each bucket is exactly as long as its elements need, and keys only grow.
//
// The layout (integers in the machine's byte order):
//
//	page:    id 8 | flags 2 | count 2 | overflow 4 | elements | data
//	leaf:    flags 4 | offset 4 | len(key) 4 | len(value) 4   -> key value
//	bucket:  root page 8, 0 | sequence 8, 0 | a leaf page
//	meta:    magic 4 | version 4 | page size 4 | flags 4 | root bucket 16 |
//	         freelist 8 | pages 8 | transaction 8 | FNV-1a of all that 8
const (
	boltMagic         = 0xED0CDAED
	boltVersion       = 2
	boltHeaderSize    = 16
	boltElementSize   = 16
	boltMetaSize      = 64
	boltBucketSize    = 16
	boltLeaf          = 0x02
	boltMeta          = 0x04
	boltBucketElement = 0x01
	boltNoFreelist    = ^uint64(0)
	boltPageSizeMin   = 1 << 10
	boltPageSizeMax   = 1 << 16
)

// boltVisit is called with each key and value of a bucket in order. They are valid until it
// returns.
type boltVisit func(key, val []byte) error

// checkVotes reads the file of term and vote at path before bbolt opens it. It returns an
// ErrCorruptLog if anything was changed since it was written. It cannot detect a newest transaction
// that the disk never wrote although it claimed so.
func checkVotes(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return DirError(filepath.Dir(path), err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return DirError(filepath.Dir(path), err)
	}
	if err := callGuarded("check term and vote", func() error { return checkVotesIn(f, info.Size()) }); err != nil {
		return corruptLog(path, err.Error())
	}
	return nil
}

// checkVotesIn is checkVotes for the size bytes in f. Its errors only say what is wrong.
func checkVotesIn(f io.ReaderAt, size int64) error {
	root, err := readBoltRoot(f, size)
	if err != nil {
		return err
	}
	buckets := map[string][]byte{}
	if _, err := boltElements(root, boltBucketElement, func(key, val []byte) error {
		buckets[string(key)] = val
		return nil
	}); err != nil {
		return err
	}
	conf, logs := buckets["conf"], buckets["logs"]
	if conf == nil || logs == nil || len(buckets) != 2 {
		return errors.New("it needs the buckets conf and logs")
	}
	if err := visitBucket(conf, checkStableValue); err != nil {
		return err
	}
	return visitBucket(logs, func([]byte, []byte) error { return errors.New("it has entries, which belong into " + walDirName) })
}

// checkStableValue checks a value of the stable store.
func checkStableValue(key, val []byte) error {
	val, err := openStableValue(key, val)
	if err == nil && string(key) == voteTermKey {
		_, err = decodeVote(val)
	}
	return err
}

type boltMetaPage struct {
	pageSize, freelist, root, pages, txid uint64
}

// readBoltRoot returns the page of the root bucket after checking both meta pages. If the newer
// one were damaged, bbolt would silently use the other, which lacks the newest transaction.
func readBoltRoot(f io.ReaderAt, size int64) ([]byte, error) {
	meta0, err := readBoltMeta(f, 0, 0)
	if err != nil {
		return nil, err
	}
	meta1, err := readBoltMeta(f, 1, int64(meta0.pageSize))
	if err != nil {
		return nil, err
	}
	newer, older := meta0, meta1
	if meta1.txid > meta0.txid {
		newer, older = meta1, meta0
	}
	if newer.txid != older.txid+1 || newer.pageSize != older.pageSize {
		return nil, fmt.Errorf("transactions %d and %d do not follow each other", older.txid, newer.txid)
	}
	if newer.freelist != boltNoFreelist {
		return nil, errors.New("has a list of free pages, which claimq never writes")
	}
	if newer.pages > uint64(size)/newer.pageSize {
		return nil, fmt.Errorf("is cut off: %d bytes instead of %d pages of %d", size, newer.pages, newer.pageSize)
	}
	if newer.root < 2 || newer.root >= newer.pages {
		return nil, fmt.Errorf("page %d of %d", newer.root, newer.pages)
	}
	page := make([]byte, newer.pageSize)
	if _, err := f.ReadAt(page, int64(newer.root*newer.pageSize)); err != nil {
		return nil, fmt.Errorf("page %d: %w", newer.root, err)
	}
	if !isBoltLeaf(page, newer.root) {
		return nil, fmt.Errorf("page %d is not a leaf page of that number", newer.root)
	}
	return page, nil
}

// isBoltLeaf reports whether b begins as a leaf page with this id and without overflow pages.
func isBoltLeaf(b []byte, id uint64) bool {
	n := binary.NativeEndian
	return len(b) >= boltHeaderSize && n.Uint64(b) == id && n.Uint16(b[8:]) == boltLeaf && n.Uint32(b[12:]) == 0
}

func readBoltMeta(f io.ReaderAt, id uint64, offset int64) (boltMetaPage, error) {
	b := make([]byte, boltHeaderSize+boltMetaSize)
	if _, err := f.ReadAt(b, offset); err != nil {
		return boltMetaPage{}, fmt.Errorf("meta page %d: %w", id, err)
	}
	n := binary.NativeEndian
	sum := fnv.New64a()
	_, _ = sum.Write(b[boltHeaderSize : boltHeaderSize+56])
	switch {
	case n.Uint32(b[16:]) != boltMagic, n.Uint32(b[20:]) != boltVersion:
		return boltMetaPage{}, fmt.Errorf("meta page %d: not a bbolt file of version %d", id, boltVersion)
	case n.Uint64(b[72:]) != sum.Sum64(), n.Uint64(b) != id, n.Uint64(b[8:]) != boltMetaHead():
		return boltMetaPage{}, fmt.Errorf("meta page %d: checksum mismatch", id)
	}
	m := boltMetaPage{
		pageSize: uint64(n.Uint32(b[24:])),
		root:     n.Uint64(b[32:]),
		freelist: n.Uint64(b[48:]),
		pages:    n.Uint64(b[56:]),
		txid:     n.Uint64(b[64:]),
	}
	if m.pageSize < boltPageSizeMin || m.pageSize > boltPageSizeMax || m.pageSize&(m.pageSize-1) != 0 {
		return boltMetaPage{}, fmt.Errorf("meta page %d: page size %d", id, m.pageSize)
	}
	return m, nil
}

// boltMetaHead returns the rest of a meta page's header after the id: its type, no
// elements, no overflow.
func boltMetaHead() uint64 {
	var b [8]byte
	binary.NativeEndian.PutUint16(b[:], boltMeta)
	return binary.NativeEndian.Uint64(b[:])
}

// visitBucket visits all elements of the bucket with this value.
func visitBucket(bucket []byte, visit boltVisit) error {
	if len(bucket) < boltBucketSize || !bytes.Equal(bucket[:boltBucketSize], make([]byte, boltBucketSize)) {
		return errors.New("bucket is not inline, or has a sequence, which claimq never uses")
	}
	inline := bucket[boltBucketSize:]
	if !isBoltLeaf(inline, 0) {
		return errors.New("inline bucket is not a leaf")
	}
	used, err := boltElements(inline, 0, visit)
	if err == nil && used != len(inline) {
		err = errors.New("inline bucket has another length than its elements")
	}
	return err
}

// boltElements visits the elements of a leaf page, all of which must have these flags. It
// returns how much of the page they use.
func boltElements(page []byte, flags uint32, visit boltVisit) (used int, err error) {
	n := binary.NativeEndian
	count := int(n.Uint16(page[10:]))
	used = boltHeaderSize + count*boltElementSize
	var last []byte
	for i := range count {
		at := boltHeaderSize + i*boltElementSize
		if used > len(page) {
			return 0, errors.New("elements past the end of their page")
		}
		element := page[at : at+boltElementSize]
		keyLen, valLen := int(n.Uint32(element[8:])), int(n.Uint32(element[12:]))
		if at+int(n.Uint32(element[4:])) != used || n.Uint32(element) != flags || keyLen == 0 || keyLen+valLen > len(page)-used {
			return 0, fmt.Errorf("element %d is malformed", i)
		}
		key := page[used : used+keyLen]
		if bytes.Compare(key, last) <= 0 {
			return 0, fmt.Errorf("key %x after %x", key, last)
		}
		if err := visit(key, page[used+keyLen:used+keyLen+valLen]); err != nil {
			return 0, err
		}
		last = key
		used += keyLen + valLen
	}
	return used, nil
}
