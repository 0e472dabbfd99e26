package command

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/wire"
)

// Scratch is reusable memory for decoding the most frequent commands. They share it because
// each is applied before the next is decoded. The state keeps none of it: strings and byte
// slices of tasks are allocated for themselves.
type Scratch struct {
	submit   Submit
	claim    ClaimNext
	complete Complete
	then     ClaimNext // of complete

	room  record.TaskRoom // for the tasks of submit or complete
	lists typeLists
	list  *TypeList // the types of claim or then, if in lists
}

// Reset ends the use of the decoded command. Of its memory only names are kept alive.
func (s *Scratch) Reset() {
	clear(s.submit.Tasks)
	clear(s.complete.Submit)
	s.submit, s.claim, s.complete, s.then, s.list = Submit{}, ClaimNext{}, Complete{}, ClaimNext{}, nil
}

// newClaim returns room for the claim of a Complete.
func (s *Scratch) newClaim() *ClaimNext {
	if s == nil {
		return new(ClaimNext)
	}
	s.then = ClaimNext{}
	return &s.then
}

// fields reads or writes the fields of a command.
type fields struct {
	record.Fields
	scratch *Scratch // memory to read into; nil allocates
}

// fieldsOf returns a reader of the message, into s unless that is nil.
func (s *Scratch) fieldsOf(message []byte) fields {
	if s == nil {
		return fields{Fields: record.From(message, nil)}
	}
	return fields{Fields: s.room.From(message), scratch: s}
}

// done returns the bytes written, or c as the command that was read.
func done[C Command](c C, f *fields) (Command, []byte, error) {
	if !f.Reading { // converting c to a Command would allocate
		return nil, f.Out, nil
	}
	return c, nil, f.End()
}

// typeFields reads or writes field num, a set of bits out of known; what names it in
// errors.
func (f *fields) typeFields(num protowire.Number, v *record.TypeFields, known record.TypeFields, what string) {
	f.Uint32(num, (*uint32)(v))
	if f.Reading && *v&^known != 0 {
		f.Refuse(fmt.Errorf("%w: %s in %b", wire.ErrUnknown, what, *v))
	}
}
