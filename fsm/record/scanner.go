package record

import (
	"encoding/binary"

	"google.golang.org/protobuf/encoding/protowire"
)

// The fields of a task's record that are read on their own.
const (
	FieldType    protowire.Number = 2
	FieldParams  protowire.Number = 3
	FieldPayload protowire.Number = 4
	FieldKey     protowire.Number = 8
	FieldStatus  protowire.Number = 10
	FieldWorker  protowire.Number = 11
	FieldCreated protowire.Number = 17
	FieldError   protowire.Number = 22
	FieldLabel   protowire.Number = 31
	FieldUnique  protowire.Number = 33
	FieldShare   protowire.Number = 42
)

// The fields of a claim request's record, and of a claim in it, that are read on their own.
const (
	fieldRequestID protowire.Number = 2
	fieldClaims    protowire.Number = 3
	fieldAsked     protowire.Number = 4
	fieldForgetU   protowire.Number = 5
)

// The fields of a removed task's record that are read on their own.
const (
	goneKey       protowire.Number = 2
	goneWorker    protowire.Number = 4
	goneForgetU   protowire.Number = 8
	goneThen      protowire.Number = 9
	goneType      protowire.Number = 10
	goneKeyOfType protowire.Number = 11
)

// Scanner reads some fields of a record that this process has encoded. It does not validate
// as Fields does, and stops at anything unexpected.
type Scanner struct {
	Rest  []byte
	Num   protowire.Number // of the current field
	value uint64           // of a number
	Text  []byte           // of a field with a length; shares memory with the record
}

// NextUntil moves to the next field, up to field last. Fields are in ascending order.
func (r *Scanner) NextUntil(last protowire.Number) bool {
	if r.Num > last || len(r.Rest) == 0 {
		return false
	}
	tag, ok := r.varint()
	num, typ := protowire.DecodeTag(tag)
	if !ok || num > last {
		return false
	}
	if r.Num, r.value, ok = num, 0, false; typ == protowire.VarintType || typ == protowire.BytesType {
		r.value, ok = r.varint()
	}
	if typ == protowire.BytesType {
		if r.value > uint64(len(r.Rest)) {
			return false
		}
		r.Text, r.Rest = r.Rest[:r.value:r.value], r.Rest[r.value:]
	}
	return ok
}

// varint reads a varint. Most have one byte.
func (r *Scanner) varint() (v uint64, ok bool) {
	if len(r.Rest) > 0 && r.Rest[0] < 0x80 {
		v, r.Rest = uint64(r.Rest[0]), r.Rest[1:]
		return v, true
	}
	v, n := binary.Uvarint(r.Rest)
	if n <= 0 {
		return 0, false
	}
	r.Rest = r.Rest[n:]
	return v, true
}
