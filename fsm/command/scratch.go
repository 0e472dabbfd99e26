package command

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/wire"
)

// Scratch is what those commands are decoded into that come with every task.
// Each is applied before the next one is decoded, so they share memory. The state
// keeps none of it: the strings and byte slices that tasks keep are theirs.
type Scratch struct {
	submit   Submit
	claim    ClaimNext
	complete Complete
	then     ClaimNext // of complete

	room  record.TaskRoom // of the tasks of submit or complete
	lists typeLists
	list  *TypeList // the types of claim or then, if they are one of lists
}

// Reset ends the life of the command: nothing that it points to is kept alive but
// names.
func (s *Scratch) Reset() {
	clear(s.submit.Tasks)
	clear(s.complete.Submit)
	s.submit, s.claim, s.complete, s.then, s.list = Submit{}, ClaimNext{}, Complete{}, ClaimNext{}, nil
}

// newClaim returns room for the claim of a complete.
func (s *Scratch) newClaim() *ClaimNext {
	if s == nil {
		return new(ClaimNext)
	}
	s.then = ClaimNext{}
	return &s.then
}

// fields are those of a command: beside what those of a record know, what the command
// is read into.
type fields struct {
	record.Fields
	scratch *Scratch // what lists are made of; nil: of memory of their own
}

// fieldsOf returns what reads the message, into s unless that is nil.
func (s *Scratch) fieldsOf(message []byte) fields {
	if s == nil {
		return fields{Fields: record.From(message, nil)}
	}
	return fields{Fields: s.room.From(message), scratch: s}
}

// done returns what was written, or c as a command that was read.
func done[C Command](c C, f *fields) (Command, []byte, error) {
	if !f.Reading { // to make a command of c would take memory
		return nil, f.Out, nil
	}
	return c, nil, f.End()
}

// typeFields is the field num, a set of fields of known, in messages called what.
func (f *fields) typeFields(num protowire.Number, v *record.TypeFields, known record.TypeFields, what string) {
	f.Uint32(num, (*uint32)(v))
	if f.Reading && *v&^known != 0 {
		f.Refuse(fmt.Errorf("%w: %s in %b", wire.ErrUnknown, what, *v))
	}
}
