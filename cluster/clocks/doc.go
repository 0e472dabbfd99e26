// Package clocks reads clocks: the machine's own ([System]), and the wall clocks of the
// other members, as a leader hears of them ([Walls]).
//
//	walls.go          what the members' wall clocks show, and the alarm when they are apart
//	system.go         the machine's clocks
//	system_faults.go  the same with a wall clock that a fault test sets (build tag faults)
//
// It decides about no task and no lease: package cluster/lease makes the calendar of what
// a majority shows. It starts no goroutine and knows no node.
package clocks
