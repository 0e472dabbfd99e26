// Package model is the queue as the contract has it: what each command is answered, what
// it changes and what it tells the trail, written for the simulator alone, and as plain as
// can be. All tasks are one slice, looked through from the first to the last.
//
// It imports nothing of claimq's, so that it does not share the state machine's mistakes;
// package sim translates commands for the machine and compares what both say.
//
// Where the contract leaves something open (which task a random claim takes, the share of
// a jitter), a Hint says what the machine did, and the model checks that it was allowed.
package model
