package fsm

import "encoding/binary"

// scratch is what those commands are decoded into that come with every task.
// Each is applied before the next one is decoded, so they share memory. The state
// keeps none of it: the strings and byte slices that tasks keep are theirs.
type scratch struct {
	submit   Submit
	claim    ClaimNext
	complete Complete
	then     ClaimNext // of complete

	tasks []NewTask // of submit or complete; at most scratchMax
	names names
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

// names are strings that come again and again, as those of workers and of types:
// they are shared in place of being made anew. A name takes the place of another
// with its hash.
type names [256]string

// of returns b as a string.
func (n *names) of(b []byte) string {
	slot := &n[hashEnd(b)]
	if *slot != string(b) {
		*slot = string(b)
	}
	return *slot
}

// hashEnd hashes the last 8 bytes of a name: there is where names of one kind
// differ.
func hashEnd(b []byte) uint8 {
	var end [8]byte
	copy(end[:], b[max(0, len(b)-len(end)):])
	return uint8(uint64(fnvPrime) * (binary.LittleEndian.Uint64(end[:]) + uint64(len(b))) >> 56)
}
