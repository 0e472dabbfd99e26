// Package index holds the orders in which the state machine finds tasks: which one a
// claim takes (Tournament, Queue, Ladder, Census), who holds which claims (Holdings), what is due
// when (Timeline), what ended last (Ends), and who has a name (Names).
//
// It owns how these orders lie in memory and what they cost. All of it is derived: no
// snapshot has it, packages fsm and claimable alone keep it, and it is built again from the
// saved records. Which tasks stand in an order, and under what, is a rule of theirs: here
// there are only ids, priorities, times and names.
//
// What holds: what an index yields depends on what is in it, never on how it came to be
// in it. As in all of the state machine nothing here depends on a clock, on chance or on
// the order of a map.
package index
