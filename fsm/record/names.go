package record

import (
	"encoding/binary"

	"google.golang.org/protobuf/encoding/protowire"
)

// internMax bounds how many different names are kept.
const internMax = 10_000

// Names interns strings, because type names and worker ids repeat a lot. Names beyond the
// bound are not shared.
type Names struct{ names map[string]string }

func (in *Names) intern(name []byte) string {
	if s, ok := in.names[string(name)]; ok {
		return s
	}
	s := string(name)
	if in.names == nil {
		in.names = make(map[string]string)
	}
	if len(in.names) < internMax {
		in.names[s] = s
	}
	return s
}

// NameCache caches strings that repeat often, such as worker ids and type names, so that they are
// not allocated again. A new name takes the place of the one with the same hash.
type NameCache [256]string

// Of returns b as a string.
func (n *NameCache) Of(b []byte) string {
	slot := &n[HashEnd(b)]
	if *slot != string(b) {
		*slot = string(b)
	}
	return *slot
}

// HashEnd hashes the last 8 bytes of a name, because names of one kind mostly differ there.
func HashEnd(b []byte) uint8 {
	var end [8]byte
	copy(end[:], b[max(0, len(b)-len(end)):])
	return uint8(uint64(hashPrime) * (binary.LittleEndian.Uint64(end[:]) + uint64(len(b))) >> 56)
}

// interned is Text for a name that many records share.
func (f *Fields) interned(num protowire.Number, v *string) {
	if f.names == nil {
		f.Name(num, v)
		return
	}
	if *v != "" || f.Num == num {
		if raw, ok := Part(f, num, *v); ok {
			*v = f.names.intern(raw)
		}
	}
}
