package command

import "github.com/claimq/claimq/fsm/record"

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
	return &s.then
}

// fieldReader reads a command: beside what a record's reader knows, what the command is
// decoded into.
type fieldReader struct {
	record.Reader
	scratch *Scratch // what lists are made of; nil: of memory of their own
}

// fieldsOf returns a reader of the message, which decodes into s unless that is nil.
func (s *Scratch) fieldsOf(message []byte) fieldReader {
	if s == nil {
		return fieldReader{Reader: record.ReaderOf(message)}
	}
	return fieldReader{Reader: s.room.ReaderOf(message), scratch: s}
}
