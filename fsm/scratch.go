package fsm

import "github.com/claimq/claimq/fsm/wire"

// scratch is what those commands are decoded into that come with every task.
// Each is applied before the next one is decoded, so they share memory. The state
// keeps none of it: the strings and byte slices that tasks keep are theirs.
type scratch struct {
	submit   Submit
	claim    ClaimNext
	complete Complete
	then     ClaimNext // of complete

	tasks []NewTask // of submit or complete; at most scratchMax
	names wire.Names
	lists typeLists
	list  *typeList // the types of claim or then, if they are one of lists
}

// scratchMax is how many tasks a scratch keeps room for.
const scratchMax = 1024

// reset ends the life of the command: nothing that it points to is kept alive but
// names.
func (s *scratch) reset() {
	clear(s.submit.Tasks)
	clear(s.complete.Submit)
	s.submit, s.claim, s.complete, s.then, s.list = Submit{}, ClaimNext{}, Complete{}, ClaimNext{}, nil
}

// newTasks returns an empty slice with room for n tasks.
func (s *scratch) newTasks(n int) []NewTask {
	if s == nil || n > scratchMax {
		return make([]NewTask, 0, n)
	}
	if n > len(s.tasks) {
		s.tasks = make([]NewTask, n)
	}
	return s.tasks[:0:n]
}

// newClaim returns room for the claim of a complete.
func (s *scratch) newClaim() *ClaimNext {
	if s == nil {
		return new(ClaimNext)
	}
	return &s.then
}

// fieldReader reads a command, or a record: beside the fields it knows what the
// command is decoded into.
type fieldReader struct {
	wire.Reader
	plain   bool     // of a NewTask: one that has no steps, so that nothing nests
	scratch *scratch // what lists and names are made of; nil: of memory of their own
}

// fieldsOf returns a reader of the message, which makes memory of its own for all.
func fieldsOf(message []byte) fieldReader {
	return fieldReader{Reader: wire.Reader{Rest: message}}
}

// fieldsOf returns a reader of the message, which decodes into s unless that is nil.
func (s *scratch) fieldsOf(message []byte) fieldReader {
	r := fieldsOf(message)
	if s != nil {
		r.scratch, r.Names = s, &s.names
	}
	return r
}
