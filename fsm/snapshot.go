package fsm

import "io"

// ReadSnapshot builds the state that a snapshot holds. It verifies every
// checksum and count; on an error (ErrCorrupt, or r's) there is no machine.
func ReadSnapshot(r io.Reader) (*Machine, error) { panic("stub") }

// WriteTo writes the snapshot in the format of docs/formats.md.
func (s *Snapshot) WriteTo(w io.Writer) (int64, error) { panic("stub") }

// Hash returns the state hash: equal states have equal hashes on every node.
func (s *Snapshot) Hash() [16]byte { panic("stub") }
