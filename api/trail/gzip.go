package trail

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"hash/crc32"
	"sync"
)

// A stream of events may be compressed with gzip. All such streams send the same
// compressed packets, though each is one gzip file of its own: a packet is
// compressed without regard to what came before it, and ends at a whole byte, so
// that it fits behind anything. What a stream says by itself goes uncompressed,
// in stored blocks. The checksum at the end is put together from those of the
// parts.

// gzipHead begins a gzip file: deflate, no name, no time, unknown system.
const gzipHead = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"

const (
	// gzipSync is an empty stored block. Behind it a reader has all that came.
	gzipSync = "\x00\x00\x00\xff\xff"
	// gzipEnd is an empty last block.
	gzipEnd = "\x03\x00"
	// storedMax bounds the bytes of a stored block.
	storedMax = 65_535
)

// zipped is a packet as gzip streams send it.
type zipped struct {
	Chunk []byte // as a chunk of an HTTP body
	size  uint32 // of the content, before compression
	crc   uint32 // of the content
	shift uint32 // what moves a checksum in front of the content
}

// flaters are compressors that are not in use; each has about a megabyte.
var flaters = sync.Pool{New: func() any {
	w, err := flate.NewWriter(nil, flate.BestSpeed)
	if err != nil {
		panic(err) // the level is wrong
	}
	return w
}}

// Zip compresses content, which is not empty.
func Zip(content []byte) zipped {
	out := bytes.NewBuffer(BeginChunk(make([]byte, 0, len(content)/4)))
	w := flaters.Get().(*flate.Writer)
	w.Reset(out)
	// A buffer takes all that is written.
	_, _ = w.Write(content)
	_ = w.Flush()
	flaters.Put(w)
	chunk, start := EndChunk(out.Bytes())
	return zipped{Chunk: chunk[start:], size: uint32(len(content)), crc: crc32.ChecksumIEEE(content), shift: crcShift(len(content))}
}

// Gzip is the checksum and the length of what a gzip stream has sent.
type Gzip struct {
	begun     bool // the head is sent
	crc, size uint32
}

// Add adds a packet.
func (s *Gzip) Add(z *zipped) {
	s.crc = crcMul(s.crc, z.shift) ^ z.crc
	s.size += z.size
}

// Store appends content as stored blocks, and before the first of them the head
// of the file.
func (s *Gzip) Store(b, content []byte) []byte {
	if !s.begun {
		b, s.begun = append(b, gzipHead...), true
	}
	s.crc = crc32.Update(s.crc, crc32.IEEETable, content)
	s.size += uint32(len(content))
	for len(content) > 0 {
		n := min(len(content), storedMax)
		b = append(b, 0)
		b = binary.LittleEndian.AppendUint16(b, uint16(n))
		b = binary.LittleEndian.AppendUint16(b, ^uint16(n))
		b = append(b, content[:n]...)
		content = content[n:]
	}
	return append(b, gzipSync...)
}

// End appends the end of the file.
func (s *Gzip) End(b []byte) []byte {
	b = append(b, gzipEnd...)
	b = binary.LittleEndian.AppendUint32(b, s.crc)
	return binary.LittleEndian.AppendUint32(b, s.size)
}

// The checksum CRC-32 is the remainder of a polynomial over GF(2). Bits stand in
// reverse: the highest one is that of x^0. The checksum of a followed by b is
// that of a, times x^(8*len(b)), plus that of b.

// crcMul multiplies two remainders.
func crcMul(a, b uint32) (product uint32) {
	for ; a != 0; a <<= 1 {
		if a&(1<<31) != 0 {
			product ^= b
		}
		if b&1 != 0 {
			b = b>>1 ^ crc32.IEEE
		} else {
			b >>= 1
		}
	}
	return product
}

// crcShift returns x^(8n).
func crcShift(n int) uint32 {
	result, power := uint32(1)<<31, uint32(1)<<23 // x^0, x^8
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			result = crcMul(result, power)
		}
		power = crcMul(power, power)
	}
	return result
}
