// Package clocks reads clocks: the machine's own ([System]), and the wall clocks of the
// other members, as a leader hears of them ([Walls]).
//
//	walls.go          the members' wall clocks, and the alarm when they are apart
//	system.go         the machine's clocks
//	system_faults.go  the same with a wall clock that a fault test sets (build tag faults)
//
// It does not decide about tasks or leases: package cluster/lease derives the calendar from
// the wall clocks of a majority. It starts no goroutine and knows no node.
package clocks
