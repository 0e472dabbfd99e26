package command

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/claimq/claimq/fsm/record"
)

// Scratch is reusable memory for decoding the most frequent commands. They share it because
// each is applied before the next is decoded. The state keeps none of it: strings and byte
// slices of tasks are allocated for themselves.
type Scratch struct {
	used     Kind // what was decoded into the fields below since Reset, if anything
	submit   Submit
	claim    ClaimNext
	complete Complete
	then     ClaimNext // of complete
	batch    PackedBatch

	fields fields          // of the command that is being decoded
	room   record.TaskRoom // for the tasks of submit or complete
	lists  typeLists
	list   *TypeList // the types of claim or then, if in lists
}

// Reset ends the use of the decoded command. Of its memory only names are kept alive.
func (s *Scratch) Reset() {
	s.resetOp()
	s.batch, s.fields = PackedBatch{}, fields{}
}

// resetOp is Reset for an op of a batch.
func (s *Scratch) resetOp() {
	switch s.used {
	case KindSubmit:
		clear(s.submit.Tasks)
		s.submit.Tasks = nil
	case KindClaimNext:
		s.claim = ClaimNext{}
	case KindComplete:
		clear(s.complete.Submit)
		if s.complete.Claim != nil {
			s.then = ClaimNext{}
		}
		s.complete = Complete{}
	}
	s.used, s.list = 0, nil
}

// decode decodes the body of a frequent command into s. ok is false for any other. before is
// as in appendBody.
func (s *Scratch) decode(k Kind, body []byte, before *names) (c Command, ok bool, err error) {
	f := &s.fields
	switch k {
	case KindSubmit, KindClaimNext, KindComplete:
		s.resetOp() // the fields must be zero
		*f = fields{Fields: s.room.From(body), before: *before, scratch: s}
		s.used = k
	case KindBatch:
		s.batch = PackedBatch{}
		whole := record.From(body, nil)
		return &s.batch, true, s.batch.read(&whole, s)
	default:
		return nil, false, nil
	}
	switch k {
	case KindSubmit:
		s.submit.fields(f)
		c = &s.submit
	case KindClaimNext:
		s.claim.fields(f)
		c = &s.claim
	default:
		s.complete.fields(f)
		c = &s.complete
	}
	*before = f.before
	return c, true, f.End()
}

// newClaim returns room for the claim of a Complete.
func (s *Scratch) newClaim() *ClaimNext {
	if s == nil {
		return new(ClaimNext)
	}
	return &s.then
}

// fields reads or writes the fields of a command.
type fields struct {
	record.Fields
	before  names
	scratch *Scratch // memory to read into; nil allocates
}

// names are the names that came last in a command, in its ops or the lists in them. A name that
// comes again is not written, because the ops of one client are mostly of one worker and one type.
type names struct {
	worker, taskType string
	types            []string
	list             *TypeList // of types, if they are in Scratch.lists
}

// done ends the reading of a command's body, and returns c if it was read.
func done[C Command](c C, f *fields) (Command, fields) {
	if !f.Reading { // converting c to a Command would allocate
		return nil, *f
	}
	_ = f.End() // it is f.Err
	return c, *f
}

// typeFields reads or writes field num, a set of bits out of known; what names it in
// errors.
func (f *fields) typeFields(num protowire.Number, v *record.TypeFields, known record.TypeFields, what string) {
	f.Uint32(num, (*uint32)(v))
	if f.Reading && *v&^known != 0 {
		f.Refuse(fmt.Errorf("%w: %s in %b", record.ErrUnknown, what, *v))
	}
}
