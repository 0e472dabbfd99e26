package wire

import "google.golang.org/protobuf/encoding/protowire"

// IDMax is the bound of ids and tokens on the wire, inclusive. Ids and tokens
// that are given out are below it, so IDMax itself names nothing.
const IDMax = 1 << 53

// PutUint appends the field num, of type uint32 or uint64.
func PutUint(b []byte, num protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	b = protowire.AppendTag(b, num, protowire.VarintType)
	return protowire.AppendVarint(b, v)
}

// PutInt appends the field num, of type int32 or int64.
func PutInt(b []byte, num protowire.Number, v int64) []byte {
	return PutUint(b, num, uint64(v))
}

// PutSint appends the field num, of type sint32: small negative values, as
// DefaultAttempts, take one byte.
func PutSint(b []byte, num protowire.Number, v int32) []byte {
	return PutUint(b, num, protowire.EncodeZigZag(int64(v)))
}

// PutSint64 appends the field num, of type sint64.
func PutSint64(b []byte, num protowire.Number, v int64) []byte {
	return PutUint(b, num, protowire.EncodeZigZag(v))
}

// PutID appends the field num, an id or a token. What is out of range names
// nothing, and neither does IDMax: written as that, it cannot make an entry
// that no node can read.
func PutID(b []byte, num protowire.Number, id uint64) []byte {
	return PutUint(b, num, min(id, IDMax))
}

// PutBool appends the field num, of type bool.
func PutBool(b []byte, num protowire.Number, v bool) []byte {
	if !v {
		return b
	}
	return PutUint(b, num, 1)
}

// PutString appends the field num, of type string.
func PutString(b []byte, num protowire.Number, s string) []byte {
	if s == "" {
		return b
	}
	return PutElement(b, num, s)
}

// PutBytes appends the field num, of type bytes.
func PutBytes(b []byte, num protowire.Number, v []byte) []byte {
	if len(v) == 0 {
		return b
	}
	b = protowire.AppendTag(b, num, protowire.BytesType)
	return protowire.AppendBytes(b, v)
}

// PutElement appends one element of the field num, of type repeated string. An
// empty element is written, too.
func PutElement(b []byte, num protowire.Number, s string) []byte {
	b = protowire.AppendTag(b, num, protowire.BytesType)
	return protowire.AppendString(b, s)
}

// PutIDElement appends one element of the field num, a repeated id that is not
// packed.
func PutIDElement(b []byte, num protowire.Number, id uint64) []byte {
	b = protowire.AppendTag(b, num, protowire.VarintType)
	return protowire.AppendVarint(b, min(id, IDMax))
}

// BeginMessage appends the tag of the field num, a message, and room for its
// length. The message's fields follow, then endLength(b, start).
func BeginMessage(b []byte, num protowire.Number) (_ []byte, start int) {
	return BeginLength(protowire.AppendTag(b, num, protowire.BytesType))
}

// EndOptional is endLength for a message that is not repeated, which was begun
// when b was mark long: without fields it is not written at all.
func EndOptional(b []byte, mark, start int) []byte {
	if len(b) == start {
		return b[:mark]
	}
	return EndLength(b, start)
}

// BeginLength leaves room for a length of one byte.
func BeginLength(b []byte) (_ []byte, start int) {
	b = append(b, 0)
	return b, len(b)
}

// EndLength writes the length of b[start:] in front of it. A length of more
// than one byte moves what it counts: cheaper than to compute every size
// before writing, and nothing that the two could disagree about.
func EndLength(b []byte, start int) []byte {
	n := len(b) - start
	if n < 0x80 {
		b[start-1] = byte(n)
		return b
	}
	var room [9]byte
	more := protowire.SizeVarint(uint64(n)) - 1
	b = append(b, room[:more]...)
	copy(b[start+more:], b[start:start+n])
	protowire.AppendVarint(b[:start-1], uint64(n))
	return b
}
