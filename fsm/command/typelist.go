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

// types is the field num, a list of types.
func (f *fields) types(num protowire.Number, types *[]string) {
	if f.scratch == nil || f.Num != num || !f.HasLength() || len(f.Rest) == 0 {
		f.Strings(num, types)
		return
	}
	list := f.scratch.lists.place(f.Rest)
	if tag := byte(protowire.EncodeTag(num, protowire.BytesType)); list.isAt(f.Rest, tag) {
		*types = list.names
		f.scratch.list = list
		f.Skip(len(list.encoded))
		return
	}
	before := f.Rest
	names := f.ReadStrings(list.names[:0])
	*types = names
	if encoded := before[:len(before)-len(f.Rest)]; f.Err != nil || len(encoded) > typeListMax {
		*list = TypeList{}
	} else {
		*list = TypeList{encoded: append(list.encoded[:0], encoded...), names: names, Slots: list.Slots[:0]}
		f.scratch.list = list
	}
	f.Skip(0)
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
