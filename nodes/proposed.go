package nodes

import "github.com/claimq/claimq/fsm"

// Proposed is the outcome of one proposed command.
type Proposed struct {
	Index  uint64    // of its entry
	Stamp  fsm.Stamp // the state's clocks after that entry
	Result fsm.Result

	// Release, if not nil, must be called at most once, when Result is no longer read, because its memory is reused
	// then. A caller that keeps Result never calls it.
	Release func()
}
