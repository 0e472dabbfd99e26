// Package command is the commands: what one change of the state is, before it is applied.
// It owns the types, the table of what all need to know of each kind (table.go), how a
// command is written into an entry of the log and read again (entry.go), and what a
// command says of itself to those who pass it on: what it names, how much it may change,
// in which lane it waits, which feature level it needs.
//
// A command is a value. What it does to a state package fsm knows, and there alone; no
// command knows the state, its indexes, or how it ended.
//
// Who adds a command writes its type, its message and its codec into a file here, its kind
// and row into table.go, and in package fsm the rule that applies it and the line of
// apply.go that calls it. fsm.proto and the table in docs/formats.md are made of these.
//
// Invariants:
//   - Kinds, and numbers of fields, are never used again.
//   - One value has one encoding; what is decoded is what was encoded, and nothing else is
//     accepted.
//   - A command owns its byte slices: nobody changes them after it was proposed or decoded.
//     Only one that is decoded into a Scratch shares memory, until Scratch.Reset.
package command
