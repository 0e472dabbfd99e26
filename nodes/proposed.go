package nodes

import "github.com/claimq/claimq/fsm"

// Proposed is the outcome of one proposed command.
type Proposed struct {
	Index  uint64    // of the entry that held it
	Stamp  fsm.Stamp // the state's clocks after that entry
	Result fsm.Result

	// Release, if not nil, is called at most once, by who reads Result no more: it
	// is made of memory that is used again then. Who keeps it never calls it.
	Release func()
}
