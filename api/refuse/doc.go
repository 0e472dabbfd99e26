// Package refuse owns the failed call: its code, its words, its details, and how they are
// appended. Every code that needs no words of its own has them in one table; refusals of
// the state machine and errors of the node are put into words here and nowhere else.
// A Refusal belongs to one request; whoever makes it may change it until it is appended.
package refuse
