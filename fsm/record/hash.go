package record

import "encoding/binary"

// Hash is a 64-bit FNV-1a hash, for uses where a collision gains an attacker nothing. Saved
// data depends on it, so it must never change.
type Hash uint64

// The initial value, and the factor for each byte: the 64-bit FNV prime.
const (
	HashStart Hash = 14695981039346656037
	hashPrime Hash = 1099511628211
)

// Byte returns the hash with b added.
func (h Hash) Byte(b byte) Hash { return (h ^ Hash(b)) * hashPrime }

// Text returns the hash with the bytes of s added.
func (h Hash) Text(s string) Hash {
	for i := range len(s) {
		h = h.Byte(s[i])
	}
	return h
}

// Number returns the hash with the eight bytes of v added, low byte first.
func (h Hash) Number(v uint64) Hash {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	for _, x := range b {
		h = h.Byte(x)
	}
	return h
}

// Mixed spreads every bit over the whole hash, because FNV gives similar hashes to
// neighbours.
func (h Hash) Mixed() Hash {
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	return h ^ h>>32
}
