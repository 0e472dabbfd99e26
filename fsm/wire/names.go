package wire

import "encoding/binary"

// Names caches strings that repeat often, such as worker ids and type names, so that they
// are not allocated again. A name replaces another one with its hash.
type Names [256]string

// Of returns b as a string.
func (n *Names) Of(b []byte) string {
	slot := &n[HashEnd(b)]
	if *slot != string(b) {
		*slot = string(b)
	}
	return *slot
}

// prime is the 64-bit FNV prime.
const prime = uint64(1099511628211)

// HashEnd hashes the last 8 bytes of a name, because names of one kind mostly differ there.
func HashEnd(b []byte) uint8 {
	var end [8]byte
	copy(end[:], b[max(0, len(b)-len(end)):])
	return uint8(prime * (binary.LittleEndian.Uint64(end[:]) + uint64(len(b))) >> 56)
}
