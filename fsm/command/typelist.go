package command

import (
	"bytes"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/claimq/claimq/fsm/record"
)

// typeLists caches lists of types, because workers send the same ones again and again. A new list
// takes the place of the one with the same hash. The cache never affects what a claim does.
type typeLists [16]TypeList

// TypeList is a cached list of types.
type TypeList struct {
	encoded []byte // as in the command, without the first tag
	names   []string

	// Slots caches what the state machine found by the names, if Located. It is valid as of
	// AsOf changes to the set of types. This package does not use it.
	Slots   []int32
	AsOf    uint64
	Located bool
}

// typeListMax is the size in bytes of the longest list that is cached.
const typeListMax = 8 << 10

// place returns the cache's place for the list at the start of rest, a part of a command.
func (l *typeLists) place(rest []byte) *TypeList {
	first := rest[:min(len(rest), 1+int(rest[0]))]
	return &l[(int(record.HashEnd(first))+len(rest))%len(l)]
}

// isAt reports whether exactly this list is at the start of rest. A longer list would go on
// with another tag.
func (l *TypeList) isAt(rest []byte, tag byte) bool {
	n := len(l.encoded)
	return n > 0 && bytes.HasPrefix(rest, l.encoded) && (len(rest) == n || rest[n] != tag)
}

// types reads or writes field num, a list of types. A list that equals the one before it in the
// command is not written.
func (f *fields) types(num protowire.Number, types *[]string) {
	before := &f.before
	switch {
	case f.Num == num:
		read, list := f.readTypes(num)
		switch {
		case len(before.types) > 0 && slices.Equal(read, anyType):
			read, list = nil, nil
		case slices.Equal(read, before.types):
			f.Refuse(fmt.Errorf("%w: field %d: a list that is the one before is not written", record.ErrCorrupt, num))
		}
		*types, before.list = read, list
	case f.Reading:
		*types = before.types
	case slices.Equal(*types, before.types):
	case len(*types) == 0:
		f.Strings(num, &anyType)
	default:
		f.Strings(num, types)
	}
	before.types = *types
	if f.scratch != nil {
		f.scratch.list = before.list
	}
}

// anyType is written for no types where the list before has some.
var anyType = []string{""}

// readTypes reads the list of types that is the current field, and returns where it is cached, or
// nil.
func (f *fields) readTypes(num protowire.Number) (types []string, list *TypeList) {
	if f.scratch == nil || !f.HasLength() || len(f.Rest) == 0 {
		f.Strings(num, &types)
		return types, nil
	}
	list = f.scratch.lists.place(f.Rest)
	if tag := byte(protowire.EncodeTag(num, protowire.BytesType)); list.isAt(f.Rest, tag) {
		f.Skip(len(list.encoded))
		return list.names, list
	}
	if list == f.before.list {
		list.names = nil // they are still in use
	}
	before := f.Rest
	types = f.ReadStrings(list.names[:0])
	if encoded := before[:len(before)-len(f.Rest)]; f.Err != nil || len(encoded) > typeListMax {
		*list = TypeList{}
		list = nil
	} else {
		*list = TypeList{encoded: append(list.encoded[:0], encoded...), names: types, Slots: list.Slots[:0]}
	}
	f.Skip(0)
	return types, list
}

// ListOf returns the cached list of the command being applied that has these types, or nil.
func (s *Scratch) ListOf(types []string) *TypeList {
	list := s.list
	if list == nil || len(list.names) != len(types) || &list.names[0] != &types[0] {
		return nil
	}
	return list
}
