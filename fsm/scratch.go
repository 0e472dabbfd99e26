package fsm

import "github.com/claimq/claimq/fsm/record"

// scratch is what those commands are decoded into that come with every task.
// Each is applied before the next one is decoded, so they share memory. The state
// keeps none of it: the strings and byte slices that tasks keep are theirs.
type scratch struct {
	submit   Submit
	claim    ClaimNext
	complete Complete
	then     ClaimNext // of complete

	room  record.TaskRoom // of the tasks of submit or complete
	lists typeLists
	list  *typeList // the types of claim or then, if they are one of lists
}

// reset ends the life of the command: nothing that it points to is kept alive but
// names.
func (s *scratch) reset() {
	clear(s.submit.Tasks)
	clear(s.complete.Submit)
	s.submit, s.claim, s.complete, s.then, s.list = Submit{}, ClaimNext{}, Complete{}, ClaimNext{}, nil
}

// newClaim returns room for the claim of a complete.
func (s *scratch) newClaim() *ClaimNext {
	if s == nil {
		return new(ClaimNext)
	}
	return &s.then
}

// fieldReader reads a command: beside what a record's reader knows, what the command is
// decoded into.
type fieldReader struct {
	record.Reader
	scratch *scratch // what lists are made of; nil: of memory of their own
}

// fieldsOf returns a reader of the message, which decodes into s unless that is nil.
func (s *scratch) fieldsOf(message []byte) fieldReader {
	if s == nil {
		return fieldReader{Reader: record.ReaderOf(message)}
	}
	return fieldReader{Reader: s.room.ReaderOf(message), scratch: s}
}
