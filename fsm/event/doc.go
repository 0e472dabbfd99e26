// Package event says what an event of the trail is: its kinds and their names, its place,
// and what a look at the trail asks for and gets.
//
// It owns the numbers of the kinds, which are in snapshots, and their names, which are
// the contract's. What is told when is package fsm's, how it is kept package fsm/trail's.
// Whoever reads the trail imports it.
//
// What holds: a number and a name are never given to another kind, and a place has at most
// one event.
package event
