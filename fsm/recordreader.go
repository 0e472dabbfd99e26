package fsm

import (
	"encoding/binary"

	"google.golang.org/protobuf/encoding/protowire"
)

// The fields of a task's record that are read without the others.
const (
	recordOfType    protowire.Number = 2
	recordOfKey     protowire.Number = 8
	recordOfStatus  protowire.Number = 10
	recordOfWorker  protowire.Number = 11
	recordOfCreated protowire.Number = 17
	recordOfError   protowire.Number = 22
	recordOfLabel   protowire.Number = 31
	recordOfUnique  protowire.Number = 33
)

// recordReader walks the fields of a record that this machine wrote itself, to look
// at some of them. Nothing is checked as in wire.Reader: what it does not
// understand ends the walk.
type recordReader struct {
	rest  []byte
	num   protowire.Number // of the current field
	value uint64           // of a number
	text  []byte           // of a field with a length, a part of the record
}

// nextUntil moves on to the next field, if there is one up to the last. Fields
// come in ascending order.
func (r *recordReader) nextUntil(last protowire.Number) bool {
	if r.num > last || len(r.rest) == 0 {
		return false
	}
	tag, ok := r.varint()
	num, typ := protowire.DecodeTag(tag)
	if !ok || num > last {
		return false
	}
	if r.num, r.value, ok = num, 0, false; typ == protowire.VarintType || typ == protowire.BytesType {
		r.value, ok = r.varint()
	}
	if typ == protowire.BytesType {
		if r.value > uint64(len(r.rest)) {
			return false
		}
		r.text, r.rest = r.rest[:r.value:r.value], r.rest[r.value:]
	}
	return ok
}

// varint reads a varint, mostly of one byte.
func (r *recordReader) varint() (v uint64, ok bool) {
	if len(r.rest) > 0 && r.rest[0] < 0x80 {
		v, r.rest = uint64(r.rest[0]), r.rest[1:]
		return v, true
	}
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		return 0, false
	}
	r.rest = r.rest[n:]
	return v, true
}
