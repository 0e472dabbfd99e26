// Package snapshot is a state of package fsm as bytes: captured beside the machine that
// goes on, written, hashed, wrapped as a backup, and read and verified again.
//
// A Snapshot owns the views that it was made of, until it is released; their records are
// read here and never changed. The same state gives the same bytes and the same hash on
// every node, for ever (docs/formats.md); golden files hold that.
//
// Reading trusts nothing: every checksum, size, count and order, the state hash, and what
// a record says by itself are verified before a Builder hears of them; and the Builder
// looks at what records say of each other. Beside what the Builder keeps, reading and
// writing hold one chunk in memory.
//
// It knows records, tables and the trail, and no machine. Package fsm alone uses it, and
// gives its names to all others.
package snapshot
