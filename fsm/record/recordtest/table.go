// Package recordtest provides records, and a packing of them, for tests of tables.
package recordtest

import (
	"encoding/binary"
	"maps"
	"slices"

	"pgregory.net/rapid"
)

// Record is a record for tests.
type Record struct{ Value int }

// EvenRests is a packing that packs records with even values, in various sizes.
type EvenRests struct{}

// Rests reports whether the value is even.
func (EvenRests) Rests(r *Record) bool { return r.Value%2 == 0 }

// Pack appends the value and up to 49 more bytes.
func (EvenRests) Pack(b []byte, _ uint64, r *Record) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(r.Value))
	return append(b, make([]byte, r.Value%50)...)
}

// Unpack is the inverse of Pack.
func (EvenRests) Unpack(b []byte, _ bool) *Record {
	return &Record{int(binary.LittleEndian.Uint64(b))}
}

// SomeID draws an id in have, if there are any, or sometimes any id.
func SomeID(rt *rapid.T, have map[uint64]int, id *rapid.Generator[uint64]) uint64 {
	if len(have) == 0 || rapid.IntRange(0, 9).Draw(rt, "any") == 0 {
		return id.Draw(rt, "id")
	}
	return rapid.SampledFrom(slices.Sorted(maps.Keys(have))).Draw(rt, "known id")
}
