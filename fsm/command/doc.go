// Package command defines the commands: each is one change of the state before it is
// applied. It has their types, the table of what all code needs to know of each kind
// (table.go), their encoding in a log entry (entry.go), and what a command says about
// itself to code that passes it on: what it names, how much it may change, in which lane it
// waits, which feature level it needs.
//
// A command is a value. Only package fsm knows what it does to a state; no command knows
// the state, its indexes or its own outcome.
//
// To add a command, write its type, message and codec into a file here, add its kind and
// row to table.go, and add to package fsm the rule that applies it and the line of apply.go
// that calls the rule. fsm.proto and the table in docs/formats.md are generated from these.
//
// Invariants:
//   - Kinds and field numbers are never reused.
//   - A value has exactly one encoding. Decoding returns what was encoded and accepts nothing else.
//   - A command owns its byte slices: they must not change after it was proposed or decoded. Only a
//     command decoded into a Scratch shares memory, until Scratch.Reset.
package command
