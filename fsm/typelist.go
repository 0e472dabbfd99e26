package fsm

import (
	"bytes"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/claimq/claimq/fsm/wire"
)

// typeLists remembers lists of types that claims came with: workers ask for the same
// ones again and again. A list takes the place of another with its hash. Nothing
// that a claim does depends on what is remembered.
type typeLists [16]typeList

// typeList is a list of types.
type typeList struct {
	encoded []byte // as the command has it, from behind the first tag
	names   []string
	// slots are those of the types that there are, in Machine.ready, as of so many
	// changes of what types there are.
	slots   []int32
	asOf    uint64
	located bool
}

// typeListMax is how many bytes a list may have that is remembered.
const typeListMax = 8 << 10

// place returns the place of the list at the start of rest, a part of a command.
func (l *typeLists) place(rest []byte) *typeList {
	first := rest[:min(len(rest), 1+int(rest[0]))]
	return &l[(int(wire.HashEnd(first))+len(rest))%len(l)]
}

// isAt reports whether the list, and no longer one, is at the start of rest, where
// another type would have that tag.
func (l *typeList) isAt(rest []byte, tag byte) bool {
	n := len(l.encoded)
	return n > 0 && bytes.HasPrefix(rest, l.encoded) && (len(rest) == n || rest[n] != tag)
}

// types reads the field, a list of types, and all that follow it and belong to the
// same list.
func (r *fieldReader) types() []string {
	if r.scratch == nil || !r.HasLength() || len(r.Rest) == 0 {
		return r.Strings(nil)
	}
	list := r.scratch.lists.place(r.Rest)
	if tag := byte(protowire.EncodeTag(r.Num, protowire.BytesType)); list.isAt(r.Rest, tag) {
		r.Rest = r.Rest[len(list.encoded):]
		r.scratch.list = list
		return list.names
	}
	before := r.Rest
	names := r.Strings(list.names[:0])
	encoded := before[:len(before)-len(r.Rest)]
	if r.Err != nil || len(encoded) > typeListMax {
		*list = typeList{}
		return names
	}
	*list = typeList{encoded: append(list.encoded[:0], encoded...), names: names, slots: list.slots[:0]}
	r.scratch.list = list
	return names
}

// locate returns the slots in ready of the listed types that there are.
func (m *Machine) locate(types []string) []int32 {
	list := m.answers.commands.list
	if list == nil || len(list.names) != len(types) || &list.names[0] != &types[0] {
		return m.appendSlots(nil, types)
	}
	if !list.located || list.asOf != m.typesChanged {
		list.slots = m.appendSlots(list.slots[:0], types)
		list.located, list.asOf = true, m.typesChanged
	}
	return list.slots
}

func (m *derived) appendSlots(slots []int32, types []string) []int32 {
	for _, name := range types {
		if ts := m.types[name]; ts != nil {
			slots = append(slots, ts.Slot())
		}
	}
	return slots
}
