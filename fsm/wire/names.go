package wire

import "encoding/binary"

// Names are strings that come again and again, as those of workers and of types:
// they are shared and not made again. A name takes the place of another
// with its hash.
type Names [256]string

// Of returns b as a string.
func (n *Names) Of(b []byte) string {
	slot := &n[HashEnd(b)]
	if *slot != string(b) {
		*slot = string(b)
	}
	return *slot
}

// prime is that of FNV-1a of 64 bits.
const prime = uint64(1099511628211)

// HashEnd hashes the last 8 bytes of a name: there is where names of one kind
// differ.
func HashEnd(b []byte) uint8 {
	var end [8]byte
	copy(end[:], b[max(0, len(b)-len(end)):])
	return uint8(prime * (binary.LittleEndian.Uint64(end[:]) + uint64(len(b))) >> 56)
}
