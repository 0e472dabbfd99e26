// Package simnet simulates a network in memory for tests in virtual time: hosts listen and
// dial, and connections behave like TCP's when the network or the other host fails. It only
// waits on channels, condition variables and timers, so that package testing/synctest knows
// which goroutines wait.
//
// Data written to a connection arrives in order, with the connection's delay. Connections do
// not wait for each other, so messages on different ones may overtake each other. A link,
// which is one direction between two hosts, can be held (data sent over it arrives once the
// link is released, even if the sender has closed meanwhile) or cut (its connections
// break). One direction of a single connection can be stalled, or torn, so that the sender
// of a message does not know whether it arrived. A host can lose its power: data that it
// has sent may arrive, but it sends nothing more, not even an end, and its peers notice
// when it is back, or at once if the machine lives on.
package simnet
