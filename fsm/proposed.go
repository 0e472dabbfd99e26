package fsm

// Proposed is what became of one proposed command.
type Proposed struct {
	Index  uint64 // of the entry that held it
	Stamp  Stamp  // the state's clocks after that entry
	Result Result
}
