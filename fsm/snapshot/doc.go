// Package snapshot encodes states of package fsm: it captures a state while the machine
// goes on, writes it, hashes it, wraps it as a backup, and reads and verifies it again.
//
// A Snapshot owns its views until it is released, and never changes their records. The same
// state gives the same bytes and the same hash on every node, forever (docs/formats.md);
// golden files check that.
//
// Reading trusts nothing: checksums, sizes, counts, orders, the state hash and each record
// by itself are verified before the Builder gets them; the Builder verifies how records
// relate to each other. In addition to what the Builder keeps, reading and writing hold one
// chunk in memory.
//
// It knows records, tables and the trail, but no machine. Only package fsm uses it; other
// packages use the names in fsm/names.go.
package snapshot
