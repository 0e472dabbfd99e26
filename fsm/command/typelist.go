package command

import (
	"bytes"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/claimq/claimq/fsm/wire"
)

// typeLists remembers lists of types that claims came with: workers ask for the same
// ones again and again. A list takes the place of another with its hash. Nothing
// that a claim does depends on what is remembered.
type typeLists [16]TypeList

// TypeList is a list of types.
type TypeList struct {
	encoded []byte // as the command has it, from behind the first tag
	names   []string

	// Slots is what the state machine has found by the names, if Located: as of so many
	// changes of what types there are. Here nothing looks at it.
	Slots   []int32
	AsOf    uint64
	Located bool
}

// typeListMax is how many bytes a list may have that is remembered.
const typeListMax = 8 << 10

// place returns the place of the list at the start of rest, a part of a command.
func (l *typeLists) place(rest []byte) *TypeList {
	first := rest[:min(len(rest), 1+int(rest[0]))]
	return &l[(int(wire.HashEnd(first))+len(rest))%len(l)]
}

// isAt reports whether the list, and no longer one, is at the start of rest, where
// another type would have that tag.
func (l *TypeList) isAt(rest []byte, tag byte) bool {
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
		*list = TypeList{}
		return names
	}
	*list = TypeList{encoded: append(list.encoded[:0], encoded...), names: names, Slots: list.Slots[:0]}
	r.scratch.list = list
	return names
}

// ListOf returns the list whose names are the types, nil if they are those of no list
// that the command being applied came with.
func (s *Scratch) ListOf(types []string) *TypeList {
	list := s.list
	if list == nil || len(list.names) != len(types) || &list.names[0] != &types[0] {
		return nil
	}
	return list
}
