package record

import "encoding/binary"

// Hash is a 64-bit FNV-1a hash, where nobody gains by a collision. What is saved is
// hashed with it, so it never changes.
type Hash uint64

// The hash of nothing, and what each byte multiplies it by.
const (
	HashStart Hash = 14695981039346656037
	hashPrime Hash = 1099511628211
)

// Byte returns the hash with a byte added.
func (h Hash) Byte(b byte) Hash { return (h ^ Hash(b)) * hashPrime }

// Text returns the hash with the bytes of s added.
func (h Hash) Text(s string) Hash {
	for i := range len(s) {
		h = h.Byte(s[i])
	}
	return h
}

// Number returns the hash with the eight bytes of v added, the low one first.
func (h Hash) Number(v uint64) Hash {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	for _, x := range b {
		h = h.Byte(x)
	}
	return h
}

// Mixed spreads every bit of the hash over all of them: FNV alone leaves
// neighbours alike.
func (h Hash) Mixed() Hash {
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	return h ^ h>>32
}
