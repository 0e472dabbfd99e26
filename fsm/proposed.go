package fsm

// Proposed is what became of one proposed command.
type Proposed struct {
	Index  uint64 // of the entry that held it
	Stamp  Stamp  // the state's clocks after that entry
	Result Result

	// Release, if not nil, is called at most once, by who reads Result no more: it
	// is made of memory that is used again then. Who keeps it never calls it.
	Release func()
}
