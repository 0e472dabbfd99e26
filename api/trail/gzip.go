package trail

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"hash/crc32"
	"sync"
)

// A stream of events may be compressed with gzip. All such streams share the same compressed packets, although each
// stream is a gzip file of its own: a packet is compressed independently of what precedes it, and ends at a whole
// byte, so that it can follow anything. What a single stream sends by itself is stored uncompressed. The checksum at
// the end is combined from those of the parts.

// gzipHead is the beginning of a gzip file: deflate, no name, no time, unknown system.
const gzipHead = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"

const (
	// gzipSync is an empty stored block, after which a reader can decode everything before.
	gzipSync = "\x00\x00\x00\xff\xff"
	// gzipEnd is an empty last block.
	gzipEnd = "\x03\x00"
	// storedMax bounds the bytes of a stored block.
	storedMax = 65_535
)

// zipped is a packet for gzip streams.
type zipped struct {
	Chunk []byte // as a chunk of an HTTP body
	size  uint32 // of the uncompressed content
	crc   uint32 // of the uncompressed content
	shift uint32 // the factor for a checksum that precedes the content
}

// flaters are unused compressors; each takes about a megabyte.
var flaters = sync.Pool{New: func() any {
	w, err := flate.NewWriter(nil, flate.BestSpeed)
	if err != nil {
		panic(err) // only for an invalid level
	}
	return w
}}

// Zip compresses content, which must not be empty.
func Zip(content []byte) zipped {
	out := bytes.NewBuffer(BeginChunk(make([]byte, 0, len(content)/4)))
	w := flaters.Get().(*flate.Writer)
	w.Reset(out)
	// Writing to a buffer never fails.
	_, _ = w.Write(content)
	_ = w.Flush()
	flaters.Put(w)
	chunk, start := EndChunk(out.Bytes())
	return zipped{Chunk: chunk[start:], size: uint32(len(content)), crc: crc32.ChecksumIEEE(content), shift: crcShift(len(content))}
}

// Gzip is the checksum and length of what a gzip stream has sent.
type Gzip struct {
	begun     bool // the header was sent
	crc, size uint32
}

// Add adds a packet.
func (s *Gzip) Add(z *zipped) {
	s.crc = crcMul(s.crc, z.shift) ^ z.crc
	s.size += z.size
}

// Store appends content as stored blocks, preceded by the file's header if that was not sent yet.
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

// The checksum CRC-32 is the remainder of a polynomial over GF(2), with the bits in reverse: the highest one is the
// coefficient of x^0. The checksum of a followed by b is that of a, times x^(8*len(b)), plus that of b.

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
