// Package index provides the orders in which the state machine finds tasks: which one a claim
// takes (Tournament, Queue, Ladder, Census), who holds which claims (Holdings), what is due when
// (Timeline), what ended last (Ends), and which record has a name (Names).
//
// It owns their layout in memory and their cost. Indexes are derived: no snapshot contains them,
// and packages fsm and claimable, which decide what is in an index, rebuild them from the saved
// records. This package knows only ids, priorities, times and names.
//
// What an index yields depends only on its contents, never on the order in which they were added.
// As everywhere in the state machine, nothing depends on a clock, on chance or on map order.
package index
