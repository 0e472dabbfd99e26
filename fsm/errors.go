package fsm

import "github.com/claimq/claimq/fsm/wire"

// Errors of formats: those of wire.
var (
	// ErrUnknownCommand is returned for an entry or a snapshot that holds what
	// this binary does not know: a version, a command type, a field, a feature
	// level. The node must stop: skipping it would make its state differ from
	// the others'.
	ErrUnknownCommand = wire.ErrUnknown
	// ErrCorrupt is returned for an entry or a snapshot whose bytes are not
	// what was written.
	ErrCorrupt = wire.ErrCorrupt
)
