// Package simnet is a network in memory for tests in virtual time: hosts that
// listen and dial, and connections that behave as TCP's do when the network or
// the other host fails. Nothing in it waits but on channels, condition variables and
// timers, so that package testing/synctest sees who waits.
//
// What is written to a connection arrives in order and after a delay of its own;
// connections do not wait for each other, so messages of two of them pass each
// other. A link, which is one direction between two hosts, can be held (what is
// sent over it arrives once it is let go, also from who has closed meanwhile) or
// cut (its connections break). One direction of a single connection can be
// stalled, or torn so that who has sent a message does not know whether it arrived.
// A host can lose its power: what it has sent may arrive, nothing comes
// from it any more, and its peers hear of that when it is back, or at once if
// the machine lives on.
package simnet
