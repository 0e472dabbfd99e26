package storage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

// boltFile reads a bbolt file page by page without trusting it: the library maps the file
// and follows its offsets, so that a single flipped bit can end the process in a goroutine
// of the library's, hang it, or hide entries.
//
// Only the two newest transactions' meta pages have checksums. For the other pages it
// checks that they are packed as bbolt does, which leaves no freedom: each element lies
// exactly after the previous one, each page is exactly as long as its elements need, each
// is reached once, and keys only grow.
//
// The layout (integers in the machine's byte order):
//
//	page:    id 8 | flags 2 | count 2 | overflow 4 | elements | data
//	leaf:    flags 4 | offset 4 | len(key) 4 | len(value) 4   -> key value
//	branch:  offset 4 | len(key) 4 | page 8                   -> key
//	bucket:  root page 8 | sequence 8 | a leaf page, if root is 0
//	meta:    magic 4 | version 4 | page size 4 | flags 4 | root bucket 16 |
//	         freelist 8 | pages 8 | transaction 8 | FNV-1a of all that 8
type boltFile struct {
	file     io.ReaderAt
	pageSize int64
	root     uint64 // page of the root bucket
	pages    uint64 // pages in use or free: [0, pages)
	seen     []bool // by page: reached from the root
}

// boltVisit is called with each key and value of a bucket in order. They are valid until it
// returns.
type boltVisit func(key, val []byte) error

const (
	boltMagic         = 0xED0CDAED
	boltVersion       = 2
	boltHeaderSize    = 16
	boltElementSize   = 16
	boltMetaSize      = 64
	boltBucketSize    = 16
	boltBranch        = 0x01
	boltLeaf          = 0x02
	boltMeta          = 0x04
	boltBucketElement = 0x01
	boltNoFreelist    = ^uint64(0)
	boltPageSizeMin   = 1 << 10
	boltPageSizeMax   = 1 << 16
	boltDepthMax      = 32
)

type boltMetaPage struct {
	pageSize, freelist, root, pages, txid uint64
}

// readBoltFile checks both meta pages. If the newer one were damaged, bbolt would silently
// use the other, which lacks the newest transaction.
func readBoltFile(f io.ReaderAt, size int64) (*boltFile, error) {
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
	return &boltFile{
		file:     f,
		pageSize: int64(newer.pageSize),
		root:     newer.root,
		pages:    newer.pages,
		seen:     make([]bool, newer.pages),
	}, nil
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

// buckets returns the values of the root bucket, all of which must be buckets.
func (f *boltFile) buckets() (map[string][]byte, error) {
	found := make(map[string][]byte)
	w := boltWalk{file: f, elementFlags: boltBucketElement, visit: func(key, val []byte) error {
		found[string(key)] = bytes.Clone(val)
		return nil
	}}
	return found, w.page(f.root, nil, nil, 0)
}

// walkBucket visits all elements of the bucket with this value.
func (f *boltFile) walkBucket(bucket []byte, visit boltVisit) error {
	if len(bucket) < boltBucketSize {
		return fmt.Errorf("bucket of %d bytes", len(bucket))
	}
	w := boltWalk{file: f, visit: visit}
	root := binary.NativeEndian.Uint64(bucket)
	if binary.NativeEndian.Uint64(bucket[8:]) != 0 {
		return errors.New("bucket with a sequence, which claimq never uses")
	}
	if root != 0 {
		if len(bucket) != boltBucketSize {
			return errors.New("bucket both inline and not")
		}
		return w.page(root, nil, nil, 0)
	}
	inline := bucket[boltBucketSize:]
	if len(inline) < boltHeaderSize || binary.NativeEndian.Uint64(inline) != 0 ||
		binary.NativeEndian.Uint16(inline[8:]) != boltLeaf || binary.NativeEndian.Uint32(inline[12:]) != 0 {
		return errors.New("inline bucket is not a leaf")
	}
	used, err := w.leaf(inline, nil, nil)
	if err == nil && used != len(inline) {
		err = errors.New("inline bucket has another length than its elements")
	}
	return err
}

// read returns page id with its overflow pages, and marks them as seen.
func (f *boltFile) read(id uint64) ([]byte, error) {
	if id < 2 || id >= f.pages {
		return nil, fmt.Errorf("page %d of %d", id, f.pages)
	}
	var head [boltHeaderSize]byte
	if _, err := f.file.ReadAt(head[:], int64(id)*f.pageSize); err != nil {
		return nil, fmt.Errorf("page %d: %w", id, err)
	}
	if got := binary.NativeEndian.Uint64(head[:]); got != id {
		return nil, fmt.Errorf("page %d says it is page %d", id, got)
	}
	count := uint64(binary.NativeEndian.Uint32(head[12:])) + 1
	if count > f.pages-id {
		return nil, fmt.Errorf("page %d reaches past the end", id)
	}
	for i := id; i < id+count; i++ {
		if f.seen[i] {
			return nil, fmt.Errorf("page %d is used twice", i)
		}
		f.seen[i] = true
	}
	page := make([]byte, int64(count)*f.pageSize)
	if _, err := f.file.ReadAt(page, int64(id)*f.pageSize); err != nil {
		return nil, fmt.Errorf("page %d: %w", id, err)
	}
	return page, nil
}

// boltWalk visits one bucket.
type boltWalk struct {
	file         *boltFile
	elementFlags uint32 // required of every element
	visit        boltVisit
	lastKey      []byte // nil before the first
}

// page walks the subtree below page id, whose keys must be in [lo, hi); nil means no bound.
func (w *boltWalk) page(id uint64, lo, hi []byte, depth int) error {
	if depth > boltDepthMax {
		return errors.New("tree too deep")
	}
	page, err := w.file.read(id)
	if err != nil {
		return err
	}
	var used int
	switch flags := binary.NativeEndian.Uint16(page[8:]); flags {
	case boltLeaf:
		used, err = w.leaf(page, lo, hi)
	case boltBranch:
		used, err = w.branch(page, lo, hi, depth)
	default:
		err = fmt.Errorf("has type %#x", flags)
	}
	if err == nil && int64(len(page)) != (int64(used)+w.file.pageSize-1)/w.file.pageSize*w.file.pageSize {
		err = fmt.Errorf("has %d bytes, and needs %d", len(page), used)
	}
	if err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	return nil
}

func (w *boltWalk) leaf(page, lo, hi []byte) (used int, err error) {
	n := binary.NativeEndian
	count := int(n.Uint16(page[10:]))
	used = boltHeaderSize + count*boltElementSize
	for i := range count {
		at := boltHeaderSize + i*boltElementSize
		if used > len(page) {
			return 0, errors.New("elements past its end")
		}
		element := page[at : at+boltElementSize]
		keyLen, valLen := int(n.Uint32(element[8:])), int(n.Uint32(element[12:]))
		if at+int(n.Uint32(element[4:])) != used || n.Uint32(element) != w.elementFlags ||
			keyLen == 0 || keyLen+valLen > len(page)-used {
			return 0, fmt.Errorf("element %d is malformed", i)
		}
		key := page[used : used+keyLen]
		if err := w.checkKey(key, lo, hi); err != nil {
			return 0, err
		}
		if err := w.visit(key, page[used+keyLen:used+keyLen+valLen]); err != nil {
			return 0, err
		}
		w.lastKey = key
		used += keyLen + valLen
	}
	return used, nil
}

func (w *boltWalk) checkKey(key, lo, hi []byte) error {
	if w.lastKey != nil && bytes.Compare(key, w.lastKey) <= 0 {
		return fmt.Errorf("key %x after %x", key, w.lastKey)
	}
	if lo != nil && bytes.Compare(key, lo) < 0 || hi != nil && bytes.Compare(key, hi) >= 0 {
		return fmt.Errorf("key %x outside of its branch", key)
	}
	return nil
}

func (w *boltWalk) branch(page, lo, hi []byte, depth int) (used int, err error) {
	children, used, err := branchElements(page)
	if err != nil {
		return 0, err
	}
	for i, child := range children {
		// The first key of a branch may be out of date after deletions and insertions at
		// the front; only the upper bound is reliable.
		childLo, childHi := lo, hi
		if i > 0 {
			childLo = child.key
		}
		if i+1 < len(children) {
			childHi = children[i+1].key
		}
		if err := w.page(child.page, childLo, childHi, depth+1); err != nil {
			return 0, err
		}
	}
	return used, nil
}

type boltChild struct {
	key  []byte
	page uint64
}

func branchElements(page []byte) (children []boltChild, used int, err error) {
	n := binary.NativeEndian
	count := int(n.Uint16(page[10:]))
	used = boltHeaderSize + count*boltElementSize
	if count == 0 || used > len(page) {
		return nil, 0, fmt.Errorf("branch of %d elements", count)
	}
	for i := range count {
		at := boltHeaderSize + i*boltElementSize
		keyLen := int(n.Uint32(page[at+4:]))
		if at+int(n.Uint32(page[at:])) != used || keyLen == 0 || keyLen > len(page)-used {
			return nil, 0, fmt.Errorf("element %d is malformed", i)
		}
		key := page[used : used+keyLen]
		if i > 0 && bytes.Compare(key, children[i-1].key) <= 0 {
			return nil, 0, fmt.Errorf("key %x after %x", key, children[i-1].key)
		}
		children = append(children, boltChild{key, n.Uint64(page[at+8:])})
		used += keyLen
	}
	return children, used, nil
}
