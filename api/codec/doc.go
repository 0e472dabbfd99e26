// Package codec turns the bodies of calls into commands, and results into answers. Each call has one type that
// implements Body, so that an op of a batch and a call by itself use the same code. The package contains the JSON
// decoder, and appends tasks, steps and schedules with the fields and their order of docs/api.md; tests check these
// against the types of package wire. A body is either refused as a whole or becomes one command. Results point into
// the given body, which must not change until the answer is appended.
//
// It has no state and knows no connections, keys or nodes; package api decides who may make a call.
package codec
