// Package index finds tasks for the state machine: which one a claim takes (Types), who holds
// which claims (Holdings), what is due when (Timeline), what ended last (Ends), and which
// record has a name (Names).
//
// Types decides which tasks can be claimed next. It keeps the task types, their claimable
// tasks, and what holds claims back: groups, a pause, a limit of claims, a rate limit. A claim
// reads it from chooser.go down to type.go, ranking.go, queue.go, fifo.go and tournament.go. Package fsm
// reports a task by Enter and Leave, ends each change of one with Arrange, and reports changed
// settings with Limit; OpenDue advances the time. Between these calls the view of claims is
// incomplete. What a claim does to the task is a rule of package fsm.
//
// Everything here is derived, except for the tags and clocks of turns, which package fsm saves for it (Turns):
// the rest is in no snapshot, and package fsm rebuilds it from the saved records. This package changes neither tasks nor settings; it owns the layout of the indexes
// in memory and their cost.
//
// An index yields results by its contents and the time that it is told, never by the order in
// which they were added. As everywhere in the state machine, nothing depends on a clock, on
// chance or on map order.
package index
